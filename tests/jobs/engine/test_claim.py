"""Which jobs a claim takes, and in which order."""

from collections import Counter

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import claim
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.operations.pause import pause, resume
from tests.kit import at_once, claimed, run_and_settle
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def ids(jobs: list[ClaimedJob]) -> list[int]:
    return [job.id for job in jobs]


def test_a_claim_counts_the_attempt_and_marks_the_job() -> None:
    enqueue(Working)
    (job,) = claimed("test.work")
    row = Job.objects.get()
    assert (row.state, row.attempt, row.claim_no) == ("running", 1, 1)
    assert (job.attempt, job.claim_no, job.worker, job.max_attempts) == (1, 1, row.worker, 3)
    assert (row.lease_until - row.started_at).total_seconds() == 60


def test_jobs_are_claimed_by_priority_then_due_time_then_id(clock) -> None:
    late = [enqueue(Working, delay=5), enqueue(Working, delay=5)]
    early = enqueue(Working, delay=1)
    urgent = enqueue(Working, delay=9, priority=0)
    low = enqueue(Working, priority=3)
    clock.step(10)
    assert ids(claimed("test.work")) == [urgent, early, *late, low]


def test_a_claim_takes_a_batch_at_most() -> None:
    enqueue_many(Working, [{}] * 25)
    assert [len(claimed("test.work")) for _ in range(4)] == [10, 10, 5, 0]


def test_what_is_not_due_is_not_claimed(clock) -> None:
    enqueue(Working, delay=10)
    assert claimed("test.work") == []
    clock.step(11)
    assert len(claimed("test.work")) == 1


def test_a_queue_claims_its_own_jobs_alone() -> None:
    enqueue("test.other")
    assert claimed("test.work") == []


def test_a_pause_stops_a_running_drain_at_its_next_claim(
    scripted, run_jobs, ten_to_a_claim
) -> None:
    done = []

    def work(job: ClaimedJob) -> None:
        done.append(job.id)
        pause("test.work", by="alice")

    scripted("test.work", work)
    enqueue_many(Working, [{}] * 25)
    assert run_jobs("test.work") == 10 == len(done)
    assert Job.objects.pending().count() == 15
    resume("test.work", by="alice")
    scripted("test.work", lambda job: None)
    assert run_jobs("test.work") == 15


def test_a_lost_job_is_claimed_alone_and_first() -> None:
    enqueued = [enqueue(Working) for _ in range(5)]
    Job.objects.filter(pk__in=enqueued[2:4]).update(isolate=True)
    batches = [ids(claimed("test.work")) for _ in range(3)]
    assert batches == [[enqueued[2]], [enqueued[3]], [enqueued[0], enqueued[1], enqueued[4]]]


def test_a_rate_limit_holds_by_the_clock(clock) -> None:
    queue = Queue.objects.filter(pk="test.work")
    enqueue_many(Working, [{}] * 50)
    queue.update(rate_limit=0.001)
    taken = []
    for _ in range(6):
        clock.step(1000)
        taken.append(len(claimed("test.work")) + len(claimed("test.work")))
    assert taken == [1] * 6
    queue.update(rate_limit=2)
    clock.step(3600)
    assert len(claimed("test.work")) == 2, "the bucket holds those of one second"


def test_the_rate_limit_of_a_handler_holds_until_an_operator_sets_another(
    clock, monkeypatch
) -> None:
    monkeypatch.setattr(Working, "rate_limit", 0.001)
    enqueue_many(Working, [{}] * 50)
    clock.step(1000)
    assert [len(claimed("test.work")) for _ in range(2)] == [1, 0]
    Queue.objects.filter(pk="test.work").update(rate_limit=5)
    clock.step(1000)
    assert len(claimed("test.work")) == 5


def test_a_rate_below_one_a_second_is_kept(clock) -> None:
    Queue.objects.filter(pk="test.work").update(rate_limit=0.0001)
    enqueue_many(Working, [{}] * 10)
    clock.step(20_000)
    taken = 0
    for _ in range(60):
        clock.step(1000)
        taken += len(claimed("test.work"))
    assert 6 <= taken <= 8


def test_max_running_leaves_room_as_jobs_settle(monkeypatch) -> None:
    monkeypatch.setattr(Working, "max_running", 3)
    enqueue_many(Working, [{}] * 10)
    first = claimed("test.work")
    assert len(first) == 3
    assert claimed("test.work") == []
    run_and_settle(first[:1])
    assert len(claimed("test.work")) == 1


def test_a_claim_under_limits_sends_little_while_others_wait_for_its_lock() -> None:
    Queue.objects.filter(pk="test.work").update(rate_limit=5)
    enqueue(Working)
    limits = claim.Limits(max_running=3, rate_limit=5)
    with CaptureQueriesContext(connection) as captured:
        claim.claim(registry.get("test.work"), limits, 10)
    messages = [query["sql"] for query in captured if "SAVEPOINT" not in query["sql"]]
    assert ["pg_advisory" in sql for sql in messages] == [True, False, False]


def test_an_operators_limit_goes_before_the_handlers(monkeypatch) -> None:
    monkeypatch.setattr(Working, "max_running", 3)
    Queue.objects.filter(pk="test.work").update(max_running=1)
    enqueue_many(Working, [{}] * 10)
    assert len(claimed("test.work")) == 1


@pytest.mark.django_db(transaction=True)
def test_eight_at_once_claim_no_job_twice() -> None:
    enqueue_many(Working, [{}] * 400)

    def work(_: int) -> list[int]:
        mine: list[int] = []
        while batch := claimed("test.work", 5):
            mine += ids(batch)
        return mine

    taken = Counter(id for mine in at_once(8, work) for id in mine)
    assert len(taken) == 400
    assert set(taken.values()) == {1}
    assert set(Job.objects.values_list("claim_no", "attempt", "state")) == {(1, 1, "running")}


@pytest.mark.django_db(transaction=True)
def test_eight_at_once_never_exceed_max_running(monkeypatch) -> None:
    monkeypatch.setattr(Working, "max_running", 3)
    enqueue_many(Working, [{}] * 60)
    most = []

    def work(_: int) -> int:
        done = 0
        for _round in range(200):
            if not Job.objects.pending().exists():
                break
            if jobs := claimed("test.work", 2):
                most.append(Job.objects.running().count())
                done += len(run_and_settle(jobs))
        return done

    assert sum(at_once(8, work)) == 60
    assert max(most) <= 3


@pytest.mark.django_db(transaction=True)
def test_eight_at_once_take_no_more_tokens_than_there_are(clock) -> None:
    Queue.objects.filter(pk="test.work").update(rate_limit=5)
    enqueue_many(Working, [{}] * 100)
    clock.step(100)
    taken = at_once(8, lambda _: len(claimed("test.work", 3)))
    assert 5 <= sum(taken) <= 6  # a sixth trickles in when the threads take 0.2 s
