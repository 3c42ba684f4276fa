"""Jobs that wait for another job."""

import pytest

from tailrace.jobs.enqueue import InvalidJob, enqueue
from tailrace.jobs.models import Job
from tailrace.jobs.operations.cancel import cancel
from tests.kit import claimed, run_and_settle
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def states(*ids: int | None) -> list[str]:
    states = dict(Job.objects.values_list("id", "state"))
    return [states[id] for id in ids if id is not None]


@pytest.mark.parametrize(
    ("do", "follows"),
    [
        ("nothing", "pending"),
        ("skip", "pending"),
        ("permanent", "cancelled"),
        ("cancel", "cancelled"),
        ("retry", "waiting"),
        ("snooze", "waiting"),
    ],
)
def test_what_follows_depends_on_how_the_parent_ends(do: str, follows: str) -> None:
    parent = enqueue(Working, {"do": do, "seconds": 60, "note": "x"})
    child = enqueue(Working, after=parent)
    assert states(child) == ["waiting"]
    run_and_settle(claimed("test.work"))
    assert states(child) == [follows]


def test_a_chain_runs_in_order_within_one_drain(run_jobs, scripted) -> None:
    order = []
    scripted("test.work", lambda job: order.append(job.id))
    a = enqueue(Working)
    b = enqueue(Working, after=a)
    c = enqueue(Working, after=b)
    run_jobs("test.work")
    assert order == [a, b, c]


def test_a_failure_cancels_the_whole_chain_with_its_reason(run_jobs) -> None:
    a = enqueue(Working, {"do": "permanent", "note": "no"})
    b = enqueue(Working, after=a)
    c = enqueue("test.other", after=b)
    run_jobs("test.work")
    assert states(a, b, c) == ["failed", "cancelled", "cancelled"]
    assert Job.objects.get(pk=b).error == f"waited for job {a}, which was failed"
    assert Job.objects.get(pk=c).error == f"waited for job {b}, which was cancelled"


def test_many_may_wait_for_one(run_jobs) -> None:
    parent = enqueue(Working)
    children = [enqueue("test.other", after=parent) for _ in range(20)]
    run_jobs("test.work")
    assert states(*children) == ["pending"] * 20


def test_after_a_job_that_is_done_nothing_waits(run_jobs) -> None:
    parent = enqueue(Working)
    run_jobs("test.work")
    assert states(enqueue(Working, after=parent)) == ["pending"]


def test_nothing_can_wait_for_a_job_that_was_cancelled() -> None:
    parent = enqueue(Working)
    cancel([parent])
    with pytest.raises(InvalidJob, match="cancelled; a job after it would never run"):
        enqueue(Working, after=parent)


def test_a_delay_of_the_follower_is_kept(run_jobs, clock) -> None:
    parent = enqueue(Working)
    child = enqueue(Working, after=parent, delay=60)
    run_jobs("test.work")
    assert states(child) == ["pending"]
    clock.step(61)
    run_jobs("test.work")
    assert states(child) == ["completed"]
