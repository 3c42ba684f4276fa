"""Lanes: fair queues serve them in turn, ordered ones run one job per lane at a time."""

from collections.abc import Callable

import pytest

from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob, Retry
from tailrace.jobs.models import Job
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay
from tests.kit import at_once, claimed, run_and_settle
from tests.sandbox.handlers import Fair, Ordered, Working

pytestmark = pytest.mark.django_db


def lanes(jobs: list[ClaimedJob]) -> list[str]:
    return [job.lane for job in jobs]


def settle(jobs: list[ClaimedJob]) -> None:
    run_and_settle(jobs)


def test_a_small_lane_is_served_beside_a_flood(monkeypatch) -> None:
    monkeypatch.setattr(Fair, "batch_size", 1)
    enqueue_many(Fair, [{"lane": "a"}] * 10_000)
    enqueue_many(Fair, [{"lane": "b"}] * 10)
    served = [claimed("test.fair")[0].lane for _ in range(20)]
    assert served.count("b") == 10


def test_the_lanes_of_a_batch_share_it() -> None:
    for lane, count in (("a", 100), ("b", 100), ("c", 1)):
        enqueue_many(Fair, [{"lane": lane}] * count)
    taken = lanes(claimed("test.fair"))
    assert len(taken) >= 9
    assert (taken.count("c"), 4 <= taken.count("a") <= 5, 4 <= taken.count("b") <= 5) == (
        1,
        True,
        True,
    )


def test_a_lane_alone_gets_the_whole_batch() -> None:
    enqueue_many(Fair, [{"lane": "a"}] * 30)
    assert len(claimed("test.fair")) == 10


def test_more_lanes_than_a_batch_are_served_in_turn() -> None:
    names = [f"lane{n:02}" for n in range(25)]
    enqueue_many(Fair, [{"lane": name} for name in names for _ in range(4)])
    served = [lane for _ in range(5) for lane in lanes(claimed("test.fair"))]
    assert {served.count(name) for name in names} == {2}


def test_a_lane_whose_jobs_are_due_later_takes_no_share() -> None:
    enqueue_many(Fair, [{"lane": "a", "delay": 60}] * 10)
    enqueue_many(Fair, [{"lane": "b"}] * 20)
    assert lanes(claimed("test.fair")) == ["b"] * 10


def test_a_lane_is_served_by_priority() -> None:
    enqueue(Fair, lane="a")
    urgent = enqueue(Fair, lane="a", priority=0)
    assert claimed("test.fair", 1)[0].id == urgent


def test_a_lost_job_of_a_small_lane_is_not_passed_over_for_ever() -> None:
    for lane in ("a", "c"):
        enqueue_many(Fair, [{"lane": lane}] * 100)
    lost = enqueue(Fair, lane="b")
    Job.objects.filter(pk=lost).update(isolate=True)
    served = [[job.id for job in claimed("test.fair")] for _ in range(3)]
    assert [lost] in served


def test_an_ordered_lane_runs_one_job_at_a_time_in_order() -> None:
    ids = [enqueue(Ordered, lane=lane) for lane in "aab"]
    first = claimed("test.ordered")
    assert [job.id for job in first] == [ids[0], ids[2]]
    assert claimed("test.ordered") == []
    settle(first)
    assert [job.id for job in claimed("test.ordered")] == [ids[1]]


def test_a_head_that_waits_for_its_retry_blocks_its_lane_alone(clock, scripted) -> None:
    head, behind, other = [enqueue(Ordered, lane=lane) for lane in "aab"]

    def work(job: ClaimedJob) -> None:
        if job.id == head:
            raise Retry("not yet", after=60)

    scripted("test.ordered", work)
    settle(claimed("test.ordered"))
    assert claimed("test.ordered") == []
    assert Job.objects.get(pk=other).state == "completed"
    clock.step(61)
    assert [job.id for job in claimed("test.ordered")] == [head]
    assert Job.objects.get(pk=behind).state == "pending"


def test_a_replayed_job_waits_until_its_lane_is_free() -> None:
    old, new = enqueue(Ordered, lane="a"), enqueue(Ordered, lane="a")
    cancel([old])
    (running,) = claimed("test.ordered")
    assert running.id == new
    replay([old])
    assert claimed("test.ordered") == []
    settle([running])
    assert [job.id for job in claimed("test.ordered")] == [old]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("limit", [1, 4])
def test_eight_claims_at_once_keep_the_order_of_each_lane(limit: int) -> None:
    enqueue_many(Ordered, [{"lane": f"l{n % 5}"} for n in range(100)])
    doubled, order = [], []

    def work(_: int) -> int:
        done = 0
        for _round in range(2000):
            if not Job.objects.pending().exists():
                break
            if jobs := claimed("test.ordered", limit):
                running = list(Job.objects.running().values_list("lane", flat=True))
                doubled.append(len(running) - len(set(running)))
                order.extend((job.lane, job.id) for job in jobs)
                done += len(run_and_settle(jobs))
        return done

    assert sum(at_once(8, work)) == 100
    assert max(doubled) == 0
    for lane in {lane for lane, _id in order}:
        ids = [id for at, id in order if at == lane]
        assert ids == sorted(ids)


@pytest.mark.django_db(transaction=True)
def test_a_replay_during_claims_never_doubles_a_lane() -> None:
    olds = [enqueue(Ordered, lane="a") for _ in range(20)]
    cancel(olds)
    enqueue_many(Ordered, [{"lane": "a"}] * 20)
    most = []

    def work(number: int) -> None:
        for place in range(20):
            if number == 0:
                replay([olds[place]])
            elif jobs := claimed("test.ordered"):
                most.append(Job.objects.running().count())
                run_and_settle(jobs)

    at_once(5, work)
    assert set(most) == {1}


@pytest.mark.django_db(transaction=True)
def test_eight_at_once_claim_no_fair_job_twice() -> None:
    enqueue_many(Fair, [{"lane": f"l{n % 7}"} for n in range(210)])

    def work(_: int) -> list[int]:
        mine: list[int] = []
        for _round in range(2000):
            if not Job.objects.pending().exists():
                break
            mine += [job.id for job in claimed("test.fair", 4)]
        return mine

    taken = [id for mine in at_once(8, work) for id in mine]
    assert len(taken) == 210 == len(set(taken))


@pytest.mark.parametrize("kind", ["fair", "ordered"])
def test_jobs_from_before_their_handler_had_lanes_are_claimed(
    kind: str, monkeypatch: pytest.MonkeyPatch, run_jobs: Callable[..., int]
) -> None:
    pending, failed = enqueue(Working), enqueue(Working)
    Job.objects.filter(pk=failed).update(state="failed")
    monkeypatch.setattr(Working, kind, True)
    assert claimed("test.work") == []
    sync_declared.sync()
    replay([failed])
    assert run_jobs("test.work") == 2
    assert set(Job.objects.filter(pk__in=[pending, failed]).values_list("lane", "state")) == {
        ("-", "completed")
    }
