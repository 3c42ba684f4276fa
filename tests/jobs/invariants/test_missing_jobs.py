"""The sweeper creates the jobs that events lack, within their handler's `backfill`."""

from datetime import timedelta

import pytest

from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, SweepRun
from tests.jobs.invariants.sweeping import CORE, check, repaired
from tests.kit import (
    at_once,
    end_older_transactions,
    wait_until,
)
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Log

pytestmark = pytest.mark.django_db


def old_events(count: int, clock) -> list[int]:
    """Publish events without jobs of test.log, and let two minutes pass."""
    ids = [event.id for event in publish([NewEvent(Happened) for _ in range(count)])]
    Job.objects.filter(handler="test.log").delete()
    clock.step(120)
    return ids


@pytest.mark.django_db(transaction=True)
def test_a_handler_deployed_later_gets_the_events_of_its_window(clock, monkeypatch) -> None:
    too_old = old_events(3, clock)
    clock.step(7200)
    ids = old_events(5, clock)
    end_older_transactions()
    monkeypatch.setattr(Log, "backfill", 3600)
    run = check("jobs.events_have_their_jobs")
    assert (run.outcome, run.found, run.repaired) == ("checked", 1, 5)
    made = Job.objects.filter(handler="test.log").values_list("event", flat=True)
    assert sorted(made) == ids
    assert not set(made) & set(too_old)
    repaired("jobs.events_have_their_jobs", 0)


@pytest.mark.django_db(transaction=True)
def test_backfill_makes_only_the_jobs_that_lack(clock, monkeypatch) -> None:
    ids = old_events(4, clock)
    enqueue(Log, event_id=ids[0])
    end_older_transactions()
    monkeypatch.setattr(Log, "backfill", 3600)
    check("jobs.events_have_their_jobs")
    assert Job.objects.filter(handler="test.log").count() == 4


@pytest.mark.django_db(transaction=True)
def test_events_that_have_their_jobs_are_no_violation(clock, monkeypatch) -> None:
    publish([NewEvent(Happened) for _ in range(3)])
    end_older_transactions()
    monkeypatch.setattr(Log, "backfill", 3600)
    repaired("jobs.events_have_their_jobs", 0)
    Job.objects.filter(handler="test.log").delete()
    repaired("jobs.events_have_their_jobs", 0)  # each event is checked once


@pytest.mark.django_db(transaction=True)
def test_events_that_a_handler_does_not_want_are_none(clock, monkeypatch) -> None:
    old_events(3, clock)
    end_older_transactions()
    monkeypatch.setattr(Log, "backfill", 3600)
    monkeypatch.setattr(Log, "wants", lambda *_: False)
    repaired("jobs.events_have_their_jobs", 0)


def test_a_handler_without_a_window_gets_nothing_for_the_past(clock) -> None:
    old_events(3, clock)
    repaired("jobs.events_have_their_jobs", 0)


@pytest.mark.django_db(transaction=True)
def test_many_sweeps_at_once_repair_once(clock) -> None:
    old = publish([NewEvent(Happened) for _ in range(50)])
    Job.objects.filter(handler="test.log").delete()
    Event.objects.filter(pk__in=[event.id for event in old]).update(
        recorded_at=clock.now() - timedelta(minutes=5)
    )
    end_older_transactions()
    Log.backfill = 3600
    try:
        at_once(4, lambda _: sweep.sweep(CORE))
        wait_until(lambda: not check("jobs.events_have_their_jobs").found, 20)
    finally:
        Log.backfill = None
    assert Job.objects.filter(handler="test.log").count() == 50
    assert not SweepRun.objects.filter(outcome="error").exists()
