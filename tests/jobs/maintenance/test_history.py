"""Finished jobs move to a partition per day, and a day is dropped; all else works as before."""

import re
import time
from datetime import date, timedelta
from pathlib import Path

import pytest
from django.db import DatabaseError, transaction

from tailrace.db.query import database_now, execute, query
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.engine.claiming import kinds
from tailrace.jobs.engine.inserting import insert_sql
from tailrace.jobs.engine.leases import give_back, renew
from tailrace.jobs.engine.maintenance import backfill, periods
from tailrace.jobs.engine.maintenance.pruning import history, prune
from tailrace.jobs.engine.maintenance.ticking import rescue, tick
from tailrace.jobs.engine.settling import settle_sql
from tailrace.jobs.enqueue import enqueue, enqueue_many
from tailrace.jobs.models import Attempt, Job, Replay
from tailrace.jobs.models.queue_period import MINUTE, QueuePeriod
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay
from tailrace.jobs.operations.undo import undo
from tailrace.jobs.platform.inspection.storage import past_retention
from tailrace.jobs.runtime.states import State
from tests.kit import (
    another_transaction,
    at_once,
    claimed,
    held,
    run_and_settle,
    sessions_that_wait,
    wait_until,
)
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Log, Working

pytestmark = pytest.mark.django_db

HOUR, DAY = 3600, 86_400


@pytest.fixture(autouse=True)
def _retention(settings) -> None:
    settings.JOBS_RETENTION_DAYS = 30
    settings.JOBS_FAILED_RETENTION_DAYS = 90
    settings.EVENTS_RETENTION_DAYS = 30


def completed() -> int:
    id = enqueue(Working)
    assert id is not None
    run_and_settle(claimed("test.work"))
    return id


def cancelled() -> int:
    id = enqueue(Working)
    assert id is not None
    cancel([id])
    return id


def place(id: int) -> str:
    """Return the table that has the row of the job."""
    [(table,)] = query(
        "SELECT tableoid::regclass::text FROM tailrace_jobs_job WHERE id = %(id)s", id=id
    )
    return str(table)


def today() -> date:
    return database_now().date()


def test_what_ended_is_moved_to_its_day_and_found_as_before(clock) -> None:
    done, day = completed(), today()
    other, pending = cancelled(), enqueue(Working, delay=DAY)
    places = [place(id) for id in (done, other, pending)]
    assert places == [history.partition(day), "tailrace_jobs_live", "tailrace_jobs_live"]
    assert history.move() == 0, "it ended only now"
    clock.step(HOUR)
    assert history.move() == 1
    places = [place(id) for id in (done, other, pending)]
    assert places == [*[history.partition(day)] * 2, "tailrace_jobs_live"]
    assert {job.done_on for job in Job.objects.filter(pk__in=[done, other])} == {day}
    assert set(Job.objects.values_list("pk", flat=True)) == {done, other, pending}
    assert history.move() == 0


@pytest.mark.parametrize("state", [State.WAITING, State.PENDING, State.RUNNING, State.FAILED])
def test_what_may_go_on_stays_live(clock, state: State) -> None:
    id = enqueue(Working)
    ended = database_now() if state == State.FAILED else None
    Job.objects.filter(pk=id).update(state=state, finished_at=ended)
    clock.step(2 * DAY)
    assert history.move() == 0
    assert place(id) == "tailrace_jobs_live"


def test_each_day_has_its_own_and_the_next_days_are_made_ahead(clock) -> None:
    first, day = cancelled(), today()
    clock.step(2 * DAY)
    second = cancelled()
    clock.step(HOUR)
    assert history.move() == 2
    assert place(first) == history.partition(day)
    assert place(second) == history.partition(day + timedelta(days=2))
    assert history.days()[-1] == today() + timedelta(days=history.DAYS_AHEAD)


def test_charts_have_what_is_in_the_history_already(clock) -> None:
    completed()
    clock.step(120)
    periods.add_up()
    [minute] = QueuePeriod.objects.filter(queue="test.work", seconds=MINUTE)
    assert sum(minute.run.values()) == 1


def test_a_cancelled_job_of_the_history_runs_again_and_an_undo_puts_it_back(
    clock, django_user_model
) -> None:
    id = enqueue(Working)
    cancel([id])
    clock.step(HOUR)
    assert history.move() == 1
    record = Replay.objects.create(what="one job")
    assert replay([id], record=record.pk).changed == [id]
    assert place(id) == "tailrace_jobs_live"
    assert undo(record, django_user_model.objects.create(username="ann")).changed == [id]
    assert Job.objects.get(pk=id).state == State.CANCELLED
    assert history.move() == 1
    replay([id])
    run_and_settle(claimed("test.work"))
    assert Job.objects.get(pk=id).state == State.COMPLETED


def test_a_child_of_a_job_of_the_history_is_released(clock) -> None:
    parent = completed()
    clock.step(HOUR)
    history.move()
    child = enqueue(Working, after=parent)
    assert Job.objects.get(pk=child).state == State.PENDING


def test_a_job_of_the_history_is_owed_no_more(clock, monkeypatch) -> None:
    monkeypatch.setattr(Log, "backfill", 10 * DAY)
    publish([NewEvent(Happened)])
    run_and_settle(claimed("test.log"))
    assert Job.objects.get(handler="test.log").done_on == today()
    clock.step(HOUR)
    execute("UPDATE tailrace_jobs_queue SET backfilled_xact = NULL, backfilled_to = 0")
    assert backfill.advance("test.log") == 0
    assert Job.objects.filter(handler="test.log").count() == 1


def test_a_job_that_its_event_has_had_is_not_enqueued_again(clock) -> None:
    [event] = publish([NewEvent(Happened)])
    run_and_settle(claimed("test.log"))
    job = Job.objects.get(handler="test.log", event_id=event.id)
    assert job.done_on == today()
    other = {"event_id": event.id, "routing_key": "other"}
    assert enqueue(Log, event_id=event.id, routing_key=job.routing_key) is None
    again = [{"event_id": event.id, "routing_key": job.routing_key}, other]
    assert enqueue_many(Log, again) == 1
    assert enqueue_many(Log, again) == 0
    clock.step(2 * DAY)
    assert enqueue(Log, event_id=event.id, routing_key=job.routing_key) is None


# What another transaction made and what ended meanwhile is in no unique index of the live jobs.
_ENDED = """
SELECT 1 FROM tailrace_events_event WHERE id = %(event)s FOR NO KEY UPDATE;
INSERT INTO tailrace_jobs_job (handler, event_id, routing_key, state, priority, lane, attempt,
  claim_no, worker, isolate, progress_note, error, cancel_requested, finished_at, done_on)
VALUES ('test.log', %(event)s, 'more', 'completed', 1, '', 1, 1, 'w', false, '', '', false, now(),
  %(day)s)
"""


@pytest.mark.django_db(transaction=True)
def test_who_creates_a_job_of_an_event_waits_for_others_and_sees_what_they_ended() -> None:
    [event] = publish([NewEvent(Happened)])
    with another_transaction("SELECT 1") as other:
        with other.cursor() as cursor:
            cursor.execute(_ENDED, {"event": event.id, "day": today()})

        def work(number: int) -> int | None:
            if number:
                return enqueue(Log, event_id=event.id, routing_key="more")
            wait_until(sessions_that_wait)
            other.connection.commit()
            return None

        assert at_once(2, work) == [None, None]
    assert Job.objects.filter(event_id=event.id, routing_key="more").count() == 1


def test_a_day_past_its_retention_is_dropped_with_what_belongs_to_its_jobs(clock) -> None:
    now = database_now()
    clock.step(DAY - now.hour * HOUR)  # after midnight: the next step stays within the day
    publish([NewEvent(Happened)])
    [event] = Event.objects.all()
    run_and_settle(claimed("test.log"))
    done = completed()
    Attempt.objects.create(job_id=done, claim_no=7, outcome="retried")
    kept = enqueue(Working, delay=90 * DAY)
    Attempt.objects.create(job_id=kept, claim_no=1, outcome="snoozed")
    Job.objects.filter(state__in=["pending", "running"]).exclude(pk=kept).delete()
    day = today()
    clock.step(HOUR)
    history.move()
    clock.step(30 * DAY)
    assert day in history.days()
    prune.prune()
    assert day in history.days(), "its last job is not 30 days old yet"
    clock.step(DAY)
    overdue = past_retention.most_overdue()
    assert overdue is not None
    assert overdue[1] < DAY
    prune.prune()
    assert day not in history.days()
    assert list(Job.objects.values_list("pk", flat=True)) == [kept]
    assert list(Attempt.objects.values_list("job", flat=True)) == [kept]
    assert not Event.objects.filter(pk=event.pk).exists()
    assert past_retention.most_overdue() is None


def test_a_days_indexes_are_those_of_the_live_jobs_that_no_state_limits(clock) -> None:
    history.make_partitions()
    [(live,)] = query(
        "SELECT array_agg(indexname::text) FROM pg_indexes WHERE tablename = 'tailrace_jobs_live'"
    )
    [(of_day,)] = query(
        "SELECT array_agg(indexname::text) FROM pg_indexes WHERE tablename = %(table)s",
        table=history.partition(today()),
    )
    names = {re.sub(r"_\d{8}$", "", name) for name in of_day}
    assert {
        "tailrace_jobs_live_pkey",
        "tailrace_job_owed_once",
        "tailrace_job_after",
        "tailrace_job_of_endpoint",
    } <= names
    assert names <= {*live, "tailrace_job_ended"}
    assert not names & {
        "tailrace_job_due",
        "tailrace_job_failed",
        "tailrace_job_unique_key",
        "tailrace_job_done",
    }


@pytest.mark.parametrize("state", ["pending", "running", "waiting", "failed"])
def test_what_asks_for_live_jobs_of_all_partitions_reads_no_day(clock, state: str) -> None:
    history.make_partitions()
    plan = Job.objects.filter(state=state).order_by("-id").explain()
    assert "tailrace_jobs_live" in plan
    assert history.PREFIX not in plan


@pytest.mark.parametrize("module", [kinds, settle_sql, renew, give_back, insert_sql, rescue, tick])
def test_no_statement_of_the_engine_names_all_jobs(module) -> None:
    statements = [value for value in vars(module).values() if isinstance(value, str)]
    if module is kinds:
        files = sorted(Path(kinds.__file__).parent.glob("*.sql"))
        assert [file.stem for file in files] == ["fair", "ordered", "plain", "take"]
        statements = [file.read_text() for file in files]
    assert any("tailrace_jobs_live" in text for text in statements)
    assert not [text for text in statements if re.search(r"\btailrace_jobs_job\b", text)]


def test_a_day_has_done_jobs_alone(clock) -> None:
    id = completed()
    clock.step(HOUR)
    history.move()
    with pytest.raises(DatabaseError, match="violates check constraint"), transaction.atomic():
        execute("UPDATE tailrace_jobs_job SET state = 'pending' WHERE id = %(id)s", id=id)


@pytest.mark.django_db(transaction=True)
def test_a_held_row_stays_and_a_reader_of_the_history_delays_the_drop_alone(clock) -> None:
    first, second, day = cancelled(), cancelled(), today()
    clock.step(HOUR)
    with held("SELECT 1 FROM tailrace_jobs_live WHERE id = %s FOR UPDATE", first):
        assert history.move() == 1
    assert (place(first), place(second)) == ("tailrace_jobs_live", history.partition(day))
    assert history.move() == 1
    clock.step(32 * DAY)
    with held("SELECT count(*) FROM tailrace_jobs_job"):
        assert history.drop_past(30, time.monotonic()) == 0
        assert day in history.days()
        assert enqueue(Working) is not None
    history.drop_past(30, time.monotonic() + 60)
    assert day not in history.days()
