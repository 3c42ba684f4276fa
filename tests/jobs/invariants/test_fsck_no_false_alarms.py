"""fsck reports nothing that is young, was merged or pruned, or was not wanted at publish."""

import pytest

from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance.sweeping import sweep
from tailrace.jobs.engine.maintenance.sweeping.check_all import check_all
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job, Queue, SweepRun
from tailrace.jobs.operations.pause import pause, resume
from tailrace.jobs.runtime.invariant import all_invariants
from tests.jobs.invariants.broken_state import (
    GONE,
    ago,
    change,
    event_without_job,
    event_without_jobs,
    fsck,
    report,
    running_job,
    schedule,
    unserved_queue,
)
from tests.kit import claimed
from tests.sandbox.event_types import Happened, HappenedAgain
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db


def test_young_rows_are_left_to_tick_and_sweeper() -> None:
    running_job(lease_until=ago(5))
    parent = enqueue(Working)
    enqueue(Other, after=parent)
    change(parent, state="completed", finished_at=ago(1))
    change(enqueue(Working), handler=GONE)
    schedule(next_run_at=ago(30))
    publish(NewEvent(Happened, {"who": "w"}))
    Job.objects.filter(handler="test.log").delete()
    assert fsck()[0] == 0


def test_what_the_sweeper_repairs_soon_is_shown_only(clock) -> None:
    sweep.sweep()
    enqueue(Working, after=enqueue(Working))
    Job.objects.filter(state="pending").delete()
    status, text = fsck()
    assert status == 0
    assert "jobs.waits_for_missing: 1 found" in text
    assert "  the sweeper repairs this within 300 s: " in text
    clock.step(700)
    status, text = fsck("--kind", "jobs.waits_for_missing")
    assert status == 1, "the sweeper does not run"
    assert "  with --fix: " in text


def test_what_the_sweeper_could_not_repair_is_found() -> None:
    enqueue(Working, after=enqueue(Working))
    Job.objects.filter(state="pending").delete()
    SweepRun.objects.create(invariant="jobs.waits_for_missing", outcome="checked", found=1)
    assert fsck()[0] == 1


def test_what_is_gone_at_the_second_look_is_not_reported() -> None:
    id = running_job(lease_until=None)
    looks = []

    def pause() -> None:
        looks.append(1)
        change(id, lease_until=ago(-60))

    reports = check_all(all_invariants(), pause=pause)
    assert looks, "the first look has seen it"
    assert [report.invariant.name for report in reports if report.found] == []


def test_a_paused_or_working_queue_is_served() -> None:
    unserved_queue()
    pause("test.work", by="alice")
    assert fsck()[0] == 0
    resume("test.work", by="alice")
    assert fsck("--kind", "queues.unserved")[0] == 1
    change(enqueue(Working), due_at=ago(900))
    assert claimed("test.work", 1)
    assert fsck()[0] == 0


def test_a_later_handler_owes_older_events_nothing() -> None:
    publish([NewEvent(Happened, {"who": "w"})] * 3)
    Event.objects.update(recorded_at=ago(600))
    Job.objects.filter(handler="test.log").order_by("id").first().delete()
    first_two = list(Event.objects.order_by("id").values_list("id", flat=True)[:2])
    Job.objects.filter(handler="test.log", event__in=first_two).delete()
    assert fsck()[0] == 0


def test_a_type_wanted_later_owes_older_events_nothing() -> None:
    publish([NewEvent(HappenedAgain, {"who": "w"}), NewEvent(Happened, {"who": "w"})])
    later = publish([NewEvent(HappenedAgain, {"who": "w"}), NewEvent(Happened, {"who": "w"})])
    Event.objects.update(recorded_at=ago(600))
    again = Event.objects.filter(type=HappenedAgain.name).values("id")
    assert Job.objects.filter(handler="test.log", event__in=again).delete()[0] == 2
    assert fsck()[0] == 0
    assert Job.objects.filter(handler="test.log", event=later[1].id).delete()[0] == 1
    assert report()["events.jobs_missing"]["ids"] == [[later[1].id, "test.log", ""]]


def test_an_event_that_backfill_has_passed_over_has_its_jobs(monkeypatch) -> None:
    monkeypatch.setattr("tests.sandbox.handlers.Log.backfill", 86_400)
    (event,) = publish(NewEvent(Happened, {"who": "w"}))
    Event.objects.update(recorded_at=ago(600))
    Job.objects.filter(handler="test.log").delete()
    assert fsck("--kind", "events.jobs_missing")[0] == 0, "backfill has not come to it yet"
    Queue.objects.filter(pk="test.log").update(backfilled_to=event.id)
    assert report()["events.jobs_missing"]["ids"] == [[event.id, "test.log", ""]]


def test_an_event_with_a_merged_job_lacks_none() -> None:
    publish([NewEvent(Happened, {"who": "w"})] * 2)
    Event.objects.update(recorded_at=ago(600))
    assert Job.objects.filter(handler="test.debounced", state="pending").count() == 1
    assert fsck()[0] == 0


def test_a_missing_job_of_a_known_routing_key_is_found() -> None:
    key = event_without_job("test.keyed", tag="a")
    assert report()["events.jobs_missing"]["ids"] == [key]


def test_a_routing_key_that_no_older_event_used_may_be_new() -> None:
    publish(NewEvent(Happened, {"who": "w", "tags": ["a"]}))
    publish(NewEvent(Happened, {"who": "w", "tags": ["a", "b"]}))
    Event.objects.update(recorded_at=ago(600))
    assert Job.objects.filter(handler="test.keyed", routing_key="b").delete()[0] == 1
    assert fsck()[0] == 0


def test_events_older_than_since_are_not_checked() -> None:
    event_without_jobs()
    assert fsck("--since", "5m")[0] == 0
    assert fsck("--since", "1h")[0] == 1


def test_handlers_that_query_the_database_are_not_judged(monkeypatch) -> None:
    monkeypatch.setattr("tests.sandbox.handlers.Log.wants", lambda *_: Queue.objects.exists())
    event_without_jobs()
    assert fsck()[0] == 0


def test_pruned_jobs_are_not_missing(clock, settings, run_jobs) -> None:
    publish([NewEvent(Happened, {"who": "w"})] * 2)
    run_jobs()
    clock.step(86_400 * (settings.JOBS_RETENTION_DAYS + 1))
    Job.objects.filter(handler="test.log").order_by("-id").first().delete()
    assert fsck("--since", "400d", "--kind", "events.jobs_missing")[0] == 0
