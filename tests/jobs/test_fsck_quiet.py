"""fsck raises no false alarm: what is young, was merged, pruned or not owed then is no finding."""

import pytest

from events.models import Event
from events.publish import NewEvent, publish
from jobs import operate
from jobs.enqueue import enqueue
from jobs.models import Job, Queue
from tests.jobs.test_fsck import (
    GONE,
    _event_without_jobs,
    _happened,
    _running,
    _schedule,
    _unserved,
    ago,
    change,
    fsck,
    report,
)
from tests.kit import claimed
from tests.sandbox.event_types import Happened, HappenedAgain
from tests.sandbox.handlers import Other, Working

pytestmark = pytest.mark.django_db


def test_what_is_young_is_left_to_the_tick_and_the_sweeper() -> None:
    _running(lease_until=ago(5))
    parent = enqueue(Working)
    enqueue(Other, after=parent)
    change(parent, state="completed", finished_at=ago(1))
    change(enqueue(Working), handler=GONE)
    _schedule(next_run_at=ago(30))
    publish(NewEvent(Happened, {"who": "w"}))
    Job.objects.filter(handler="test.log").delete()
    assert fsck()[0] == 0


def test_what_vanishes_before_the_second_look_is_not_reported(monkeypatch) -> None:
    id = _running(lease_until=None)
    monkeypatch.setattr("time.sleep", lambda seconds: change(id, lease_until=ago(-60)))
    assert fsck()[0] == 0


def test_a_queue_that_is_paused_or_at_work_is_served() -> None:
    _unserved()
    operate.pause("test.work", by="alice")
    assert fsck()[0] == 0
    operate.resume("test.work", by="alice")
    Queue.objects.update(drained_at=ago(800))
    claimed("test.work", 0)  # it begins a drain
    assert fsck()[0] == 0


def test_a_handler_that_was_deployed_later_owes_older_events_nothing() -> None:
    publish([NewEvent(Happened, {"who": "w"})] * 3)
    Event.objects.update(recorded_at=ago(600))
    Job.objects.filter(handler="test.log").order_by("id").first().delete()
    first_two = list(Event.objects.order_by("id").values_list("id", flat=True)[:2])
    Job.objects.filter(handler="test.log", event__in=first_two).delete()
    assert fsck()[0] == 0


def test_a_handler_that_did_not_want_a_type_then_owes_its_older_events_nothing() -> None:
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
    assert fsck()[0] == 0, "backfill has not come to it yet"
    Queue.objects.filter(pk="test.log").update(backfilled_to=event.id)
    assert report()["events.jobs_missing"]["ids"] == [[event.id, "test.log", ""]]


def test_an_event_whose_job_was_merged_by_its_unique_key_lacks_none() -> None:
    publish([NewEvent(Happened, {"who": "w"})] * 2)
    Event.objects.update(recorded_at=ago(600))
    assert Job.objects.filter(handler="test.debounced").count() == 1
    assert fsck()[0] == 0


def test_a_missing_routing_key_is_found_where_it_was_used_before() -> None:
    key = _happened("test.keyed", tag="a")
    assert report()["events.jobs_missing"]["ids"] == [key]


def test_a_routing_key_that_no_older_event_used_may_be_new() -> None:
    publish(NewEvent(Happened, {"who": "w", "tags": ["a"]}))
    publish(NewEvent(Happened, {"who": "w", "tags": ["a", "b"]}))
    Event.objects.update(recorded_at=ago(600))
    assert Job.objects.filter(handler="test.keyed", routing_key="b").delete()[0] == 1
    assert fsck()[0] == 0


def test_events_that_are_older_than_asked_for_are_left_alone() -> None:
    _event_without_jobs()
    assert fsck("--since", "5m")[0] == 0
    assert fsck("--since", "1h")[0] == 1


def test_an_answer_that_comes_from_the_database_is_no_proof(monkeypatch) -> None:
    monkeypatch.setattr("tests.sandbox.handlers.Log.wants", lambda *_: Queue.objects.exists())
    _event_without_jobs()
    assert fsck()[0] == 0


def test_pruned_jobs_are_missed_by_nobody(clock, settings, run_jobs) -> None:
    publish([NewEvent(Happened, {"who": "w"})] * 2)
    run_jobs()
    clock.step(86_400 * (settings.JOBS_RETENTION_DAYS + 1))
    Job.objects.filter(handler="test.log").order_by("-id").first().delete()
    assert fsck("--since", "400d", "--kind", "events.jobs_missing")[0] == 0
