"""Jobs of events that were recorded before their handler was deployed."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction

from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.maintenance import backfill
from tailrace.jobs.models import Job, Queue
from tests.kit import at_once, wait_for_older_transactions
from tests.sandbox.event_types import Happened, Whispered
from tests.sandbox.handlers import Debounced, Log

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _with_backfill(monkeypatch) -> None:
    monkeypatch.setattr(Log, "backfill", 3600)
    monkeypatch.setattr(Debounced, "backfill", 3600)


@pytest.fixture
def without_log(monkeypatch) -> Iterator[Any]:
    """Publish as processes do whose code has no test.log."""
    wants = Log.wants

    def publish_without(*events: NewEvent) -> list[int]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Log, "wants", lambda *_: False)
            return [event.id for event in publish(list(events))]

    yield publish_without
    assert Log.wants is wants


def catch_up() -> int:
    """Run backfill until it has checked all events; return how many jobs it created."""
    wait_for_older_transactions()
    created = 0
    while behind := {"test.log", "test.debounced"} & {*backfill.handlers_behind()}:
        created += sum(backfill.advance(name) for name in behind)
    return created


def of_log() -> list[int | None]:
    return sorted(Job.objects.filter(handler="test.log").values_list("event", flat=True))


def test_an_event_whose_transaction_was_long_is_not_passed_over(clock, without_log) -> None:
    """A later one is committed first, and is old by the clock when backfill runs."""
    with transaction.atomic():
        late = without_log(NewEvent(Happened))
        early = at_once(1, lambda _: without_log(NewEvent(Happened)))[0]
        clock.step(600)
        at_once(1, lambda _: backfill.advance("test.log"))
        assert of_log() == [], "an older transaction is open"
    assert early > late
    catch_up()
    assert of_log() == sorted(late + early)


def test_an_event_whose_job_was_merged_is_not_owed_again(clock, run_jobs) -> None:
    publish([NewEvent(Happened, {"who": "w", "n": n}) for n in range(3)])
    clock.step(100)
    assert run_jobs("test.debounced") == 1
    assert catch_up() == 0
    assert not Job.objects.filter(handler="test.debounced", state="pending").exists()


def test_each_event_is_checked_once(clock, without_log) -> None:
    without_log(NewEvent(Happened), NewEvent(Happened))
    assert catch_up() == 2
    Job.objects.filter(handler="test.log").delete()
    assert catch_up() == 0
    without_log(NewEvent(Happened))
    assert catch_up() == 1


def test_events_of_other_types_are_read_past(clock, without_log, monkeypatch) -> None:
    monkeypatch.setattr(backfill, "WINDOW", 3)
    publish([NewEvent(Whispered) for _ in range(20)])
    without_log(NewEvent(Happened))
    catch_up()
    assert len(of_log()) == 1


def test_events_without_a_transaction_come_first(clock, without_log, monkeypatch) -> None:
    monkeypatch.setattr(backfill, "WINDOW", 2)
    old = without_log(*[NewEvent(Happened) for _ in range(5)])
    Event.objects.filter(pk__in=old).update(xact=None)
    new = without_log(NewEvent(Happened))
    catch_up()
    assert of_log() == old + new


def test_a_position_from_before_transactions_is_kept(clock, without_log) -> None:
    first, second, third = without_log(*[NewEvent(Happened) for _ in range(3)])
    Event.objects.filter(pk__in=[first, second]).update(xact=None)
    Queue.objects.filter(pk="test.log").update(backfilled_to=second, backfilled_xact=None)
    catch_up()
    assert first not in of_log()
    assert third in of_log()


def test_a_first_run_begins_with_its_window(clock, without_log) -> None:
    without_log(*[NewEvent(Happened) for _ in range(20)])
    clock.step(200_000)
    with_clock = clock.now()
    old = Event.objects.order_by("id").last()
    assert old is not None
    young = without_log(NewEvent(Happened), NewEvent(Happened))
    Event.objects.filter(pk__in=young).update(recorded_at=with_clock)
    assert backfill._first_event(backfill.registry.get("test.log")) == young[0] > old.pk
    catch_up()
    assert of_log() == young


def test_a_queue_row_that_is_locked_is_not_waited_for(clock, without_log) -> None:
    with transaction.atomic():
        Queue.objects.select_for_update().get(pk="test.log")
        at_once(1, lambda _: backfill.advance("test.log"))
    assert Queue.objects.get(pk="test.log").backfilled_xact is None
    without_log(NewEvent(Happened))
    assert catch_up() == 1
    assert Queue.objects.get(pk="test.log").backfilled_xact is not None
