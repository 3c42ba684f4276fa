"""The outcomes that a handler chooses: Skip, Cancel, Permanent, Retry, Snooze."""

from datetime import timedelta

import pytest

from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Cancel, ClaimedJob, Permanent, Retry, Skip, Snooze
from tailrace.jobs.models import Attempt, Job
from tests.jobs.engine.run.raising import raising
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("returned", "state", "error"),
    [
        (Skip("nothing to do"), "skipped", "nothing to do"),
        (Cancel("not wanted"), "cancelled", "not wanted"),
        (Permanent("gone"), "failed", "gone"),
        (Retry("busy", after=60), "pending", "busy"),
        (Snooze("closed", seconds=60), "pending", "closed"),
        (Skip, "skipped", ""),
    ],
    ids=["skip", "cancel", "permanent", "retry", "snooze", "class"],
)
def test_an_outcome_that_is_returned_counts_as_raised(run_one, returned, state, error) -> None:
    job = run_one(lambda job: returned)
    assert (job.state, job.error, job.result) == (state, error, None)
    assert job.attempt == (0 if isinstance(returned, Snooze) else 1)


@pytest.mark.parametrize("after", [0, 7, 90_000])
def test_a_retry_is_due_when_it_asks_for(run_one, clock, after: int) -> None:
    job = run_one(raising(Retry("later", after=after)))
    assert (job.state, job.error) == ("pending", "later")
    assert after - 60 < (job.due_at - clock.now()).total_seconds() < after + 2


@pytest.mark.parametrize("after", [float("inf"), float("nan"), 1e300, -5])
def test_a_retry_at_an_absurd_time_is_bounded(run_one, clock, after: float) -> None:
    job = run_one(raising(Retry("later", after=after)))
    assert job.state == "pending"
    assert job.due_at - clock.now() < timedelta(days=367)


def test_permanent_fails_at_once(run_one) -> None:
    job = run_one(raising(Permanent("gone")))
    assert (job.state, job.attempt, job.error) == ("failed", 1, "gone")
    assert Attempt.objects.get().outcome == "failed"


def test_skip_counts_as_done_with_its_reason(run_one) -> None:
    job = run_one(raising(Skip("nobody listens")))
    assert (job.state, job.error) == ("skipped", "nobody listens")
    assert not Attempt.objects.exists()


def test_cancel_ends_in_cancelled(run_one) -> None:
    assert run_one(raising(Cancel("not wanted"))).state == "cancelled"


def test_a_handler_records_progress_and_sees_a_cancel(scripted, run_jobs) -> None:
    def work(job: ClaimedJob) -> None:
        job.progress(3, 10, "third")
        job.check_cancelled()
        Job.objects.filter(pk=job.id).update(cancel_requested=True)
        job.check_cancelled()
        pytest.fail("the request was not seen")

    scripted("test.work", work)
    enqueue(Working)
    run_jobs("test.work")
    job = Job.objects.get()
    assert (job.progress_done, job.progress_total, job.progress_note) == (3, 10, "third")
    assert (job.state, job.error) == ("cancelled", "cancelled while running")
