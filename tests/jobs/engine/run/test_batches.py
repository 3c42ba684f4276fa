"""Handlers that take their jobs together."""

from collections.abc import Sequence

import pytest

from tailrace.jobs.enqueue import enqueue_many
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Attempt, Job
from tests.kit import claimed, run_and_settle
from tests.sandbox.handlers import Batch, cut_own_connection

pytestmark = pytest.mark.django_db


def ten() -> list[int]:
    enqueue_many(Batch, [{}] * 10)
    return list(Job.objects.order_by("id").values_list("id", flat=True))


def states() -> list[str]:
    return list(Job.objects.order_by("id").values_list("state", flat=True))


def test_a_batch_is_one_call_and_all_complete(scripted, run_jobs) -> None:
    calls = []
    scripted("test.batch", lambda jobs: calls.append([job.id for job in jobs]))
    ids = ten()
    assert run_jobs("test.batch") == 10
    assert calls == [ids]
    assert states() == ["completed"] * 10


def test_two_of_ten_are_settled_by_name_and_the_rest_complete(scripted) -> None:
    def work(jobs: Sequence[ClaimedJob]) -> None:
        jobs[2].retry("busy", after=30)
        jobs[5].fail("gone")

    scripted("test.batch", work)
    ten()
    run_and_settle(claimed("test.batch"))
    expected = ["completed"] * 10
    expected[2], expected[5] = "pending", "failed"
    assert states() == expected
    assert sorted(Attempt.objects.values_list("message", "outcome")) == [
        ("busy", "retried"),
        ("gone", "failed"),
    ]


def test_each_word_of_a_job_settles_it_alone(scripted) -> None:
    def work(jobs: Sequence[ClaimedJob]) -> None:
        jobs[0].complete({"n": 1})
        jobs[1].skip("nothing to do")
        jobs[2].snooze("later", seconds=60)
        jobs[3].complete(object())

    scripted("test.batch", work)
    ten()
    run_and_settle(claimed("test.batch"))
    assert states()[:5] == ["completed", "skipped", "pending", "completed", "completed"]
    assert Job.objects.earliest("id").result == {"n": 1}
    assert Job.objects.get(state="pending").attempt == 0


def test_when_a_whole_batch_raises_only_the_poison_fails(scripted) -> None:
    calls = []

    def work(jobs: Sequence[ClaimedJob]) -> None:
        calls.append(len(jobs))
        jobs[0].complete("first")
        if any(job.id == poison for job in jobs):
            raise ValueError("poison")

    scripted("test.batch", work)
    poison = ten()[4]
    run_and_settle(claimed("test.batch"))
    assert calls == [10, 3, 3, 2, 2, 1, 1, 1]
    expected = ["completed"] * 10
    expected[4] = "pending"
    assert states() == expected
    assert Attempt.objects.get().job_id == poison
    assert set(Job.objects.values_list("attempt", flat=True)) == {1}


def test_what_was_said_before_the_batch_raised_is_forgotten(scripted) -> None:
    def work(jobs: Sequence[ClaimedJob]) -> None:
        if len(jobs) > 1:
            jobs[0].fail("too early")
            raise ValueError("whole batch")

    scripted("test.batch", work)
    ten()
    run_and_settle(claimed("test.batch"))
    assert states() == ["completed"] * 10


def test_an_invalid_payload_fails_alone_before_the_batch(scripted) -> None:
    handled = []
    scripted("test.batch", lambda jobs: handled.extend(job.id for job in jobs))
    ids = ten()
    Job.objects.filter(pk=ids[3]).update(payload=[1])
    run_and_settle(claimed("test.batch"))
    assert handled == ids[:3] + ids[4:]
    assert states()[3] == "failed"


def test_a_batch_that_hangs_is_interrupted_and_split(scripted, monkeypatch) -> None:
    import time

    monkeypatch.setattr(Batch, "time_limit", 0.2)

    def work(jobs: Sequence[ClaimedJob]) -> None:
        if any(job.id == poison for job in jobs):
            time.sleep(30)

    scripted("test.batch", work)
    poison = ten()[9]
    run_and_settle(claimed("test.batch"))
    assert states() == ["completed"] * 9 + ["pending"]


@pytest.mark.django_db(transaction=True)
def test_a_connection_cut_within_a_batch_settles_once(scripted) -> None:
    calls = []

    def work(jobs: Sequence[ClaimedJob]) -> None:
        calls.append(len(jobs))
        if len(calls) == 1:
            cut_own_connection()

    scripted("test.batch", work)
    ten()
    jobs = claimed("test.batch")
    assert set(run_and_settle(jobs).values()) == {"completed"}
    assert run_and_settle(jobs) == {}
    assert calls[:3] == [10, 3, 3]
    assert set(Job.objects.values_list("attempt", "claim_no", "state")) == {(1, 1, "completed")}
    assert not Attempt.objects.exists()
