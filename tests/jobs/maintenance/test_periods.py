"""What queues did, added up by minutes, ten minutes and hours: exactly once, and up to now."""

import json
import time
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
from django.db import connection

from tailrace.db.query import database_now
from tailrace.events.models import Event
from tailrace.jobs.engine.maintenance import periods
from tailrace.jobs.models import Job, QueuePeriod, Throughput
from tailrace.jobs.models.queue_period import ALL_QUEUES
from tailrace.jobs.platform.inspection.queues.queue_history import WINDOWS, history, percentile
from tests.jobs import operators

pytestmark = pytest.mark.django_db
QUEUE = operators.Trim.name


def _hour() -> datetime:
    return database_now().replace(minute=0, second=0, microsecond=0)


def _finished(at: datetime, wait: float, run: float, **fields: object) -> None:
    started = at - timedelta(seconds=run)
    due = started - timedelta(seconds=wait)
    operators.job("completed", due_at=due, started_at=started, finished_at=at, **fields)


def test_minutes_become_ten_minutes_and_hours_once(clock) -> None:
    clock.step((_hour() - database_now()).total_seconds() + 3600)
    hour = _hour()
    for minute in range(60):
        _finished(hour + timedelta(minutes=minute, seconds=30), wait=2, run=0.1)
        Throughput.objects.create(
            queue=QUEUE, minute=hour + timedelta(minutes=minute), completed=1, retried=2, failed=3,
            busy_ms=30_000,
        )  # fmt: skip
    clock.step(3600 + periods.LAG + 1)
    assert periods.add_up() == 2 * (60 + 6 + 1), "of the queue and of all queues"
    assert periods.add_up() == 0
    whole = QueuePeriod.objects.get(queue=QUEUE, seconds=3600)
    assert (whole.at, whole.completed, whole.retried, whole.failed) == (hour, 60, 120, 180)
    assert sum(whole.run.values()) == sum(whole.wait.values()) == 60
    for window in ("24h", "7d"):
        shown = history(QUEUE, WINDOWS[window])
        assert (shown.total.completed, shown.total.failed) == (60, 180)
        assert percentile(shown.total.wait, 0.95) == pytest.approx(2, rel=0.36)
        assert percentile(shown.total.run, 0.5) == pytest.approx(0.1, rel=0.36)
    assert history(QUEUE, WINDOWS["24h"]).busy == pytest.approx(1800 / 86_400)


def test_what_is_not_added_up_to_hours_is_shown_from_minutes(clock) -> None:
    clock.step((_hour() - database_now()).total_seconds() + 3600 + 25 * 60)
    hour = _hour()
    for minute in (3, 13, 23):
        Throughput.objects.create(queue=QUEUE, minute=hour + timedelta(minutes=minute), completed=1)
    periods.add_up()
    for window in WINDOWS.values():
        assert history(QUEUE, window).total.completed == 3, window
    assert [p.completed for p in history(QUEUE, WINDOWS["24h"]).periods[-3:]] == [1, 1, 1]


def test_the_time_without_upkeep_is_made_up_for_and_bounded(clock) -> None:
    now = database_now()
    for hours in (0.5, 2):
        _finished(now - timedelta(hours=hours), wait=1, run=1)
    periods.add_up()
    assert QueuePeriod.objects.filter(queue=QUEUE, seconds=60).count() == 1
    assert QueuePeriod.objects.filter(queue=ALL_QUEUES, seconds=60).count() == 60


def test_a_long_gap_is_made_up_for_in_pieces(clock, monkeypatch) -> None:
    """Each is kept; ten minutes are added up when all of their minutes are there."""
    clock.step((_hour() - database_now()).total_seconds() + 3600)
    hour = _hour()
    for minute in range(0, 30, 2):
        _finished(hour + timedelta(minutes=minute, seconds=30), wait=1, run=1)
    clock.step(30 * 60 + periods.LAG + 1)
    times = iter(range(1000))
    with monkeypatch.context() as patch:
        patch.setattr(periods, "MOST_SECONDS", 6.5)  # a look at the clock takes a second
        patch.setattr(periods, "time", SimpleNamespace(monotonic=lambda: next(times)))
        periods.add_up()
        assert _minutes() == 0, "half an hour before, in which nothing was done"
        patch.setattr(periods, "PIECE", timedelta(minutes=4))
        periods.add_up()
        assert _minutes() == 12, "24 minutes of 30"
    assert not QueuePeriod.objects.exclude(seconds=60).exists()
    periods.add_up()
    assert _minutes() == 15
    rows = QueuePeriod.objects.filter(queue=QUEUE)
    assert sum(row.completed for row in rows.filter(seconds=60)) == 0
    assert [sum(row.run.values()) for row in rows.filter(seconds=600)] == [5] * 3


def _minutes() -> int:
    return QueuePeriod.objects.filter(queue=QUEUE, seconds=60).count()


def test_all_queues_together_have_a_row_for_each_minute(clock) -> None:
    clock.step((_hour() - database_now()).total_seconds() + 3600)
    hour = _hour()
    for name, completed in ((QUEUE, 4), ("operators.other", 5)):
        Throughput.objects.create(queue=name, minute=hour, completed=completed, failed=1)
    for run in (0.1, 10):
        _finished(hour + timedelta(seconds=30), wait=2, run=run)
    for second in (5, 30, 65):
        at = hour + timedelta(seconds=second)
        Event.objects.create(source="t", source_id=str(second), type="x", recorded_at=at)
    clock.step(3600 + periods.LAG + 1)
    operators.due(60)
    periods.add_up()
    shown = history(ALL_QUEUES, WINDOWS["24h"])
    assert (shown.total.completed, shown.total.failed, shown.total.events) == (9, 2, 3)
    assert percentile(shown.total.run, 0.95) == pytest.approx(10, rel=0.36)
    rows = QueuePeriod.objects.filter(queue=ALL_QUEUES, seconds=60).order_by("at")
    assert [row.events for row in rows[:3]] == [2, 1, 0]
    assert [row.due for row in rows][-2:] == [None, 1], "how many are due is only known now"
    assert QueuePeriod.objects.get(queue=ALL_QUEUES, seconds=3600).due == 1


def test_minutes_that_are_not_summed_up_yet_are_read_from_throughput(clock) -> None:
    clock.step((_hour() - database_now()).total_seconds() + 3600 + periods.LAG + 1)
    periods.add_up()
    minute = _hour()
    for name, completed in ((QUEUE, 4), ("operators.other", 5)):
        Throughput.objects.create(queue=name, minute=minute, completed=completed)
    Throughput.objects.create(queue=QUEUE, minute=minute - timedelta(minutes=1), completed=100)
    for window in WINDOWS.values():
        assert history(QUEUE, window).total.completed == 4, "the earlier minute is summed up"
        assert history(ALL_QUEUES, window).periods[-1].completed == 9
        assert history(QUEUE, window).summed_to == minute


def test_what_no_chart_shows_is_deleted(clock) -> None:
    for seconds, hours in periods.KEPT_HOURS.items():
        for age in (hours - 1, hours + 1):
            at = database_now() - timedelta(hours=age)
            QueuePeriod.objects.create(queue="q", seconds=seconds, at=at)
    periods.add_up()
    for seconds, hours in periods.KEPT_HOURS.items():
        [kept] = QueuePeriod.objects.filter(
            seconds=seconds, at__lt=database_now() - timedelta(hours=hours - 1)
        )
        assert database_now() - kept.at < timedelta(hours=hours)


def test_a_cancelled_job_and_one_that_never_began_have_no_times(clock) -> None:
    at = database_now() - timedelta(minutes=2)
    operators.job("cancelled", started_at=at, finished_at=at)
    operators.job("failed", finished_at=at)
    periods.add_up()
    assert _minutes() == 0


def test_percentiles_are_within_their_class() -> None:
    empty = history("nobody", WINDOWS["1h"])
    assert percentile(empty.total.run, 0.5) is None
    assert len(empty.periods) == 60
    for seconds in (0.0005, 0.02, 1.5, 90, 10_000):
        _finished(database_now() - timedelta(minutes=2), wait=0, run=seconds)
        QueuePeriod.objects.all().delete()
        periods.add_up()
        value = percentile(history(QUEUE, WINDOWS["1h"]).total.run, 0.95)
        assert value == pytest.approx(seconds, rel=0.36, abs=0.001)
        Job.objects.all().delete()


def test_a_busy_week_is_read_in_little_time(clock) -> None:
    classes = {str(number): 9_000 for number in range(20, 50)}
    with connection.cursor() as cursor:
        cursor.execute(
            """INSERT INTO tailrace_jobs_queueperiod
                 (queue, seconds, at, completed, retried, failed, busy_ms, wait, run)
               SELECT 'q' || n, seconds, date_bin(make_interval(secs => seconds), now(), 'epoch')
                 - make_interval(secs => seconds * i), 18000, 5, 5, 50000, %(c)s, %(c)s
               FROM generate_series(1, 30) n, (VALUES (60, 180), (600, 216), (3600, 192))
                 AS kinds (seconds, kept), generate_series(1, kept) i""",
            {"c": json.dumps(classes)},
        )
        cursor.execute("ANALYZE tailrace_jobs_queueperiod")
        cursor.execute(
            "EXPLAIN SELECT * FROM tailrace_jobs_queueperiod WHERE queue = 'q7' AND seconds = 3600"
            " AND at >= now() - interval '7 days' ORDER BY at LIMIT 336"
        )
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert "tailrace_queue_period_once" in plan
    began = time.thread_time()
    assert history("q7", WINDOWS["7d"]).total.completed > 160 * 18_000
    assert time.thread_time() - began < 2
