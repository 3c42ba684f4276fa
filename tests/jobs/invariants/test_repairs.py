"""The sweeper finds what violates each invariant, and repairs it once."""

import pytest

from tailrace.jobs.engine.maintenance.sweeping.row_invariant import RowInvariant
from tailrace.jobs.engine.maintenance.ticking import tick
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, Queue, QueueActivity, Schedule
from tailrace.jobs.runtime.invariant import all_invariants
from tests.jobs.invariants.sweeping import CORE, check, repaired
from tests.kit import (
    claimed,
)
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def test_every_invariant_says_what_it_is() -> None:
    swept = {invariant.name for invariant in all_invariants() if invariant.every}
    assert set(CORE) <= swept
    assert all(invariant.description() for invariant in all_invariants())
    assert not [rule for rule in all_invariants() if rule.every and rule.in_batches]


class _RepairedByFunction(RowInvariant):
    repaired_by = len


def test_an_invariant_of_rows_may_name_the_function_that_repairs_it() -> None:
    invariant = _RepairedByFunction()
    assert invariant.repairs
    assert invariant.repair([1, 2]) == 2
    assert not RowInvariant().repairs


def test_an_expired_lease_is_rescued(clock) -> None:
    enqueue(Working)
    claimed("test.work")
    clock.step(61)
    repaired("jobs.lease_ended", 0)  # the tick has its chance
    clock.step(120)
    repaired("jobs.lease_ended")
    assert Job.objects.get().state == "pending"


def test_a_queue_that_the_tick_leaves_asleep_is_woken(
    clock, django_capture_on_commit_callbacks
) -> None:
    enqueue(Working)
    QueueActivity.objects.update(awake=False, awake_at=None)
    repaired("queues.asleep", 0)
    clock.step(31)
    with django_capture_on_commit_callbacks(execute=True):
        assert check("queues.asleep").found == 1
    assert QueueActivity.objects.get(name="test.work").awake
    repaired("queues.asleep", 0)


def test_a_message_that_the_tick_leaves_lost_is_sent(
    clock, django_capture_on_commit_callbacks
) -> None:
    enqueue(Working)
    QueueActivity.objects.filter(name="test.work").update(awake=True, awake_at=clock.now())
    clock.step(62)
    repaired("queues.asleep", 0)
    clock.step(30)
    with django_capture_on_commit_callbacks(execute=True):
        assert check("queues.asleep").found == 1
    repaired("queues.asleep", 0)


def test_what_waits_for_a_finished_job_is_released(clock) -> None:
    parent = enqueue(Working)
    child, second = enqueue(Working, after=parent), enqueue(Working, after=parent)
    Job.objects.filter(pk=parent).update(state="completed", finished_at=clock.now())
    assert check("jobs.waits_for_finished").found == 0  # its worker has its chance
    clock.step(11)
    run = check("jobs.waits_for_finished")
    assert (run.found, run.repaired) == (2, 2)
    assert check("jobs.waits_for_finished").found == 0
    assert set(Job.objects.filter(pk__in=[child, second]).values_list("state", flat=True)) == {
        "pending"
    }


def test_what_waits_for_a_job_that_is_gone_is_cancelled() -> None:
    parent = enqueue(Working)
    child = enqueue(Working, after=parent)
    grandchild = enqueue(Working, after=child)
    Job.objects.filter(pk=parent).delete()
    repaired("jobs.waits_for_missing")
    assert Job.objects.get(pk=child).error == "the job that it waited for was deleted"
    assert Job.objects.get(pk=grandchild).state == "cancelled"


def test_a_pending_job_without_a_handler_fails(clock) -> None:
    id = enqueue(Working)
    child = enqueue(Working, after=id)
    enqueue(Working)
    Job.objects.filter(pk=id).update(handler="test.gone")
    Queue.objects.create(name="test.gone", retired_at=clock.now())
    repaired("jobs.unknown_handler", 0)  # a process of the old code may still run it
    clock.step(121)
    repaired("jobs.unknown_handler")
    job = Job.objects.get(pk=id)
    assert (job.state, job.error.split(";")[0]) == ("failed", "no handler is called test.gone")
    assert Job.objects.get(pk=child).state == "cancelled"
    assert Job.objects.pending().count() == 1


def test_a_job_of_a_handler_that_has_not_migrated_yet_stays(clock) -> None:
    """A web process of the new code publishes; only workers of the old code run."""
    id = enqueue(Working)
    child = enqueue(Working, after=id)
    Job.objects.filter(pk__in=[id, child]).update(handler="test.newer")
    clock.step(86_400)
    tick.tick()
    repaired("jobs.unknown_handler", 0)
    assert list(Job.objects.order_by("id").values_list("state", flat=True)) == [
        "pending",
        "waiting",
    ]


def test_a_job_of_a_handler_of_a_newer_deploy_stays() -> None:
    Queue.objects.create(name="test.newer")
    id = enqueue(Working)
    Job.objects.filter(pk=id).update(handler="test.newer")
    repaired("jobs.unknown_handler", 0)


def test_a_schedule_that_is_behind_is_run(clock) -> None:
    Schedule.objects.create(
        name="s", handler="test.work", every_seconds=3600, next_run_at=clock.now()
    )
    clock.step(600)
    repaired("schedules.behind")
    assert Job.objects.count() == 1
