"""sweep: each invariant finds where it does not hold, and repairs it once."""

import threading
from datetime import timedelta

import pytest
from django.db import connection

from events.models import Event
from events.publish import NewEvent, publish
from jobs import sweep
from jobs.enqueue import enqueue
from jobs.invariants import Invariant, everything
from jobs.models import Job, Queue, Schedule, SweepRun
from tests.kit import at_once, claimed, wait_until
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Log, Working

pytestmark = pytest.mark.django_db

CORE = [
    "jobs.due_queues_are_awake",
    "jobs.events_have_their_jobs",
    "jobs.handlers_exist",
    "jobs.leases_hold",
    "jobs.none_waits_for_finished",
    "jobs.schedules_keep_up",
    "jobs.waits_for_something",
]


def check(name: str) -> SweepRun:
    (run,) = sweep.sweep([name])
    return run


def repaired(name: str, count: int = 1) -> None:
    """It finds and repairs so many, and then holds."""
    run = check(name)
    assert (run.outcome, run.error) == ("checked", "")
    assert (run.found, run.repaired) == (count, count)
    again = check(name)
    assert (again.outcome, again.found, again.repaired) == ("checked", 0, 0)


def test_every_core_invariant_is_there_and_says_what_it_is() -> None:
    names = [invariant.name for invariant in everything()]
    assert set(CORE) <= set(names)
    assert all(invariant.description() for invariant in everything())


def test_an_expired_lease_is_rescued(clock) -> None:
    enqueue(Working)
    claimed("test.work")
    clock.step(61)
    repaired("jobs.leases_hold")
    assert Job.objects.get().state == "pending"


def test_a_due_queue_that_sleeps_is_woken() -> None:
    enqueue(Working)
    Queue.objects.update(awake=False)
    repaired("jobs.due_queues_are_awake")


def test_what_waits_for_a_finished_job_is_released() -> None:
    parent = enqueue(Working)
    child, second = enqueue(Working, after=parent), enqueue(Working, after=parent)
    Job.objects.filter(pk=parent).update(state="completed")
    run = check("jobs.none_waits_for_finished")
    assert (run.found, run.repaired) == (2, 2)
    assert check("jobs.none_waits_for_finished").found == 0
    assert set(Job.objects.filter(pk__in=[child, second]).values_list("state", flat=True)) == {
        "pending"
    }


def test_what_waits_for_a_job_that_is_gone_is_cancelled() -> None:
    parent = enqueue(Working)
    child = enqueue(Working, after=parent)
    Job.objects.filter(pk=parent).delete()
    repaired("jobs.waits_for_something")
    assert Job.objects.get(pk=child).error == "the job it waited for is gone"


def test_a_pending_job_of_a_handler_that_is_gone_fails_with_that_reason() -> None:
    id = enqueue(Working)
    child = enqueue(Working, after=id)
    enqueue(Working)
    Job.objects.filter(pk=id).update(handler="test.gone")
    repaired("jobs.handlers_exist")
    job = Job.objects.get(pk=id)
    assert (job.state, job.error.split(";")[0]) == ("failed", "no handler is called test.gone")
    assert Job.objects.get(pk=child).state == "cancelled"
    assert Job.objects.pending().count() == 1


def test_a_job_of_a_queue_that_was_retired_fails_too() -> None:
    Queue.objects.create(name="test.gone", retired_at="2026-01-01T00:00Z")
    id = enqueue(Working)
    Job.objects.filter(pk=id).update(handler="test.gone")
    repaired("jobs.handlers_exist")


def test_a_job_of_a_handler_that_a_newer_deploy_brought_is_left_alone() -> None:
    Queue.objects.create(name="test.newer")
    id = enqueue(Working)
    Job.objects.filter(pk=id).update(handler="test.newer")
    repaired("jobs.handlers_exist", 0)


def test_a_schedule_that_is_behind_is_run(clock) -> None:
    Schedule.objects.create(
        name="s", handler="test.work", every_seconds=3600, next_run_at=clock.now()
    )
    clock.step(600)
    repaired("jobs.schedules_keep_up")
    assert Job.objects.count() == 1


def old_events(count: int, clock) -> list[int]:
    """Publish events of which test.log knows nothing, and let two minutes pass."""
    ids = [event.id for event in publish([NewEvent(Happened) for _ in range(count)])]
    Job.objects.filter(handler="test.log").delete()
    clock.step(120)
    return ids


def test_a_handler_deployed_later_gets_the_events_of_its_window(clock, monkeypatch) -> None:
    too_old = old_events(3, clock)
    clock.step(7200)
    ids = old_events(5, clock)
    monkeypatch.setattr(Log, "backfill", 3600)
    run = check("jobs.events_have_their_jobs")
    assert (run.outcome, run.found, run.repaired) == ("checked", 1, 5)
    made = Job.objects.filter(handler="test.log").values_list("event", flat=True)
    assert sorted(made) == ids
    assert not set(made) & set(too_old)
    repaired("jobs.events_have_their_jobs", 0)


def test_backfill_makes_only_the_jobs_that_lack(clock, monkeypatch) -> None:
    ids = old_events(4, clock)
    enqueue(Log, event_id=ids[0])
    monkeypatch.setattr(Log, "backfill", 3600)
    check("jobs.events_have_their_jobs")
    assert Job.objects.filter(handler="test.log").count() == 4


def test_backfill_leaves_young_events_alone_until_they_are_settled(clock, monkeypatch) -> None:
    publish(NewEvent(Happened))
    Job.objects.all().delete()
    monkeypatch.setattr(Log, "backfill", 3600)
    repaired("jobs.events_have_their_jobs", 0)
    clock.step(61)
    assert check("jobs.events_have_their_jobs").repaired == 1


def test_a_handler_without_a_window_gets_nothing_for_the_past(clock) -> None:
    old_events(3, clock)
    repaired("jobs.events_have_their_jobs", 0)


def test_a_sweep_of_a_sound_state_writes_its_records_alone(
    clock, django_assert_num_queries
) -> None:
    enqueue(Working)
    sweep.sweep(CORE)
    before = rows()
    clock.step(1)
    runs = sweep.sweep(CORE)
    assert rows() == before | {"jobs_sweeprun": before["jobs_sweeprun"] + len(runs)}
    assert [(run.found, run.repaired) for run in runs] == [(0, 0)] * len(CORE)


def rows() -> dict[str, int]:
    """How many versions of rows each table of ours has ever had in this transaction."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname, pg_stat_get_xact_tuples_inserted(oid)"
            " + pg_stat_get_xact_tuples_updated(oid) + pg_stat_get_xact_tuples_deleted(oid)"
            " FROM pg_class WHERE relkind = 'r' AND relname ~ '^(jobs|events)_'"
        )
        return dict(cursor.fetchall())


def test_only_what_is_due_is_checked(clock) -> None:
    assert {run.invariant for run in sweep.sweep()} >= set(CORE)
    assert not {run.invariant for run in sweep.sweep()} & set(CORE)
    clock.step(16)
    again = {run.invariant for run in sweep.sweep()}
    assert "jobs.leases_hold" in again
    assert "jobs.waits_for_something" not in again
    clock.step(300)
    assert "jobs.waits_for_something" in {run.invariant for run in sweep.sweep()}


@pytest.fixture
def invariants(monkeypatch):
    """Return `invariants(*given)`: what the sweeper knows in this test."""

    def say(*given: Invariant) -> None:
        monkeypatch.setattr(sweep, "everything", lambda: list(given))

    return say


class Sound(Invariant):
    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]

    def find(self) -> list[int]:
        return []


class Broken(Sound):
    def find(self) -> list[int]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1/0")
        return []


class HalfDone(Sound):
    def find(self) -> list[int]:
        return [1]

    def repair(self, found: object) -> int:
        enqueue(Working)
        raise RuntimeError("half done")


def test_an_invariant_that_raises_stops_no_other_and_leaves_nothing_behind(invariants) -> None:
    invariants(Broken("a"), HalfDone("b"), Sound("c"))
    runs = sweep.sweep()
    assert [run.outcome for run in runs] == ["error", "error", "checked"]
    assert "DivisionByZero" in runs[0].error or "division by zero" in runs[0].error
    assert (runs[1].found, runs[1].repaired, runs[1].error) == (1, 0, "RuntimeError: half done")
    assert not Job.objects.exists()
    assert SweepRun.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_of_two_sweeps_at_once_one_is_skipped(invariants) -> None:
    entered, leave = threading.Event(), threading.Event()

    class Slow(Sound):
        def find(self) -> list[int]:
            entered.set()
            assert leave.wait(20)
            return []

    invariants(Slow("slow"))

    def work(number: int) -> str:
        if number == 0:
            return sweep.check(Slow("slow")).outcome
        assert entered.wait(20)
        outcome = sweep.check(Slow("slow")).outcome
        leave.set()
        return outcome

    assert at_once(2, work) == ["checked", "skipped"]
    assert sorted(SweepRun.objects.values_list("outcome", flat=True)) == ["checked", "skipped"]


@pytest.mark.django_db(transaction=True)
def test_many_sweeps_at_once_repair_once(clock) -> None:
    old = publish([NewEvent(Happened) for _ in range(50)])
    Job.objects.filter(handler="test.log").delete()
    Event.objects.filter(pk__in=[event.id for event in old]).update(
        recorded_at=clock.now() - timedelta(minutes=5)
    )
    Log.backfill = 3600
    try:
        at_once(4, lambda _: sweep.sweep(CORE))
        wait_until(lambda: not check("jobs.events_have_their_jobs").found, 20)
    finally:
        Log.backfill = None
    assert Job.objects.filter(handler="test.log").count() == 50
    assert not SweepRun.objects.filter(outcome="error").exists()
