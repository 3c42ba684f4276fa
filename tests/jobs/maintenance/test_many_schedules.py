"""Many schedules: a tick costs what is due, and no slot is doubled or lost."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from tailrace.db.query import execute, query
from tailrace.jobs.engine.maintenance.ticking import schedules
from tailrace.jobs.models import Job, Schedule, Slot
from tailrace.jobs.platform.invariants.schedules import ScheduleIsOnTime
from tests.kit import at_once

pytestmark = pytest.mark.django_db

FILL = """
INSERT INTO tailrace_jobs_schedule (name, handler, routing_key, every_seconds, cron, time_zone,
                           owner, catch_up, enabled, next_run_at)
SELECT prefix || g, 'test.work', prefix || g, 60, '', 'UTC', 'tests', catch_up, true,
       statement_timestamp() + wait
FROM generate_series(1, %(count)s) g,
  (SELECT %(prefix)s AS prefix, %(catch_up)s AS catch_up, make_interval(secs => %(wait)s) AS wait) p
"""


def fill(count: int, *, prefix: str = "s", wait: float = -1.0, catch_up: str = "latest") -> None:
    """Create that many, next due in `wait` seconds."""
    execute(FILL, count=count, prefix=prefix, wait=wait, catch_up=catch_up)


def plan(name: str, **fields: object) -> Schedule:
    fields = {"handler": "test.work", "every_seconds": 60} | fields
    return Schedule.objects.create(name=name, **fields)


def each_ran_once(count: int) -> bool:
    """Whether there is one job and one slot of each."""
    jobs, slots = Job.objects.all(), Slot.objects.filter(outcome="ran", job__isnull=False)
    once = jobs.values("schedule", "slot").distinct()
    return {rows.count() for rows in (jobs, slots, once, Slot.objects.all())} == {count}


@pytest.mark.django_db(transaction=True)
def test_several_beats_share_the_work_and_double_no_slot(monkeypatch) -> None:
    monkeypatch.setattr(schedules, "FIRST_PIECE", 10)
    fill(300)
    shares = at_once(4, lambda _: schedules.work_off())
    assert sum(shares) == 300
    assert each_ran_once(300)


@pytest.mark.django_db(transaction=True)
def test_slots_of_a_beat_that_was_killed_run_once() -> None:
    fill(20)

    def killed(_number: int) -> int:
        transaction.set_autocommit(False)
        count = schedules.run_due(15)
        connection.connection.close()  # as the kernel does for a process that is gone
        return count

    assert at_once(1, killed) == [15]
    assert (Job.objects.count(), Slot.objects.count()) == (0, 0)
    assert schedules.work_off() == 20
    assert each_ran_once(20)


def test_three_missed_periods_give_one_run_under_latest(clock) -> None:
    plan("s", next_run_at=clock.now())
    clock.step(2 * 60 + 1)
    assert schedules.work_off() == 1
    assert Job.objects.count() == 1
    outcomes = Slot.objects.order_by("at").values_list("outcome", flat=True)
    assert list(outcomes) == ["merged", "merged", "ran"]


def test_a_spread_holds_through_clock_changes(clock) -> None:
    """08:00 and 09:00 in Berlin, each later by the same part of two hours, on each day."""
    start = datetime(2027, 3, 27, 12, tzinfo=UTC)
    clock.step((start - clock.now()).total_seconds())
    row = plan("x", every_seconds=None, cron="0 8,9 * * *", time_zone="Europe/Berlin", spread=7200)
    assert timedelta(hours=1) < row.offset < timedelta(hours=2)
    Schedule.objects.update(next_run_at=row.first_slot(clock.now()))
    for _ in range(4):
        due = Schedule.objects.get().next_run_at
        clock.step((due - clock.now()).total_seconds() + 0.5)
        assert schedules.work_off() == 1
        Job.objects.update(state="completed", finished_at=clock.now())
    slots = [at - row.offset for at in Slot.objects.order_by("at").values_list("at", flat=True)]
    assert [f"{at:%d %H:%M:%S}" for at in slots] == [
        "28 06:00:00", "28 07:00:00", "29 06:00:00", "29 07:00:00"
    ]  # fmt: skip


def test_a_piece_has_the_same_number_of_statements_for_any_number_of_schedules() -> None:
    counts = []
    for number, count in enumerate((3, 200)):
        fill(count, prefix=f"r{number}:")
        with CaptureQueriesContext(connection) as statements:
            assert schedules.run_due() == count
        counts.append(len(statements))
    assert counts[0] == counts[1] < 14


def test_work_goes_on_piece_by_piece_and_ends_with_the_time(monkeypatch) -> None:
    monkeypatch.setattr(schedules, "FIRST_PIECE", 10)
    monkeypatch.setattr(schedules, "LARGEST_PIECE", 10)
    monkeypatch.setattr(schedules, "SECONDS", 60.0)
    fill(25)
    with CaptureQueriesContext(connection) as statements:
        assert schedules.work_off() == 25
    assert sum("FOR NO KEY UPDATE" in each["sql"] for each in statements) == 3
    fill(25, prefix="t")
    monkeypatch.setattr(schedules, "SECONDS", 1e-9)
    assert schedules.work_off() == 10  # the next tick does the rest


@pytest.mark.parametrize("each", [0.0001, 0.0007, 0.002, 0.005, 0.009])
def test_pieces_are_as_large_as_the_time_allows(each: float) -> None:
    """However long one schedule takes here, no piece and no tick of many takes more than 1 s."""
    spent, size, total = 0.0, schedules.FIRST_PIECE, 0
    while size:
        took = size * each
        assert took <= schedules.PIECE_SECONDS or not total
        spent, total = spent + took, total + size
        size = schedules.next_size(size, took, schedules.SECONDS - spent)
    assert 0.5 < spent <= 1
    assert total > 0.5 / each


@pytest.mark.parametrize(("count", "took", "left"), [(0, 0.001, 0.9), (9, 0.2, 0.0), (5, 3, -2)])
def test_no_piece_follows_the_last_one(count: int, took: float, left: float) -> None:
    assert schedules.next_size(count, took, left) == 0


def test_slots_of_a_long_absence_are_worked_off_in_pieces(clock) -> None:
    fill(30, wait=-6030.0, catch_up="all")
    assert schedules.run_due() == 20
    assert Job.objects.count() == schedules.SLOTS_PER_PIECE == 2000
    while schedules.run_due():
        pass
    assert Job.objects.count() == 30 * 101


@pytest.mark.parametrize(
    "broken",
    [
        {"routing_key": "k" * 601},
        {"spread": float("nan")},
        {"spread": float("inf")},
        {"every_seconds": 1e300},
        {"every_seconds": 1e-9},
        {"every_seconds": None, "cron": "0 0 31 4,6 *"},
    ],
    ids=str,
)
def test_one_that_cannot_run_blocks_no_other(clock, broken: dict) -> None:
    bad = plan("bad", **broken, next_run_at=clock.now() - timedelta(days=3))
    fill(3)
    assert schedules.work_off() == 4
    assert Job.objects.count() == 3
    assert "invalid schedule" in Slot.objects.get(schedule=bad).reason
    assert schedules.work_off() == 0


def test_a_slot_that_is_recorded_does_not_run_again(clock) -> None:
    row = plan("s", next_run_at=clock.now())
    schedules.work_off()
    Job.objects.update(state="completed", finished_at=clock.now())
    Schedule.objects.update(next_run_at=row.next_run_at)
    assert schedules.work_off() == 1
    assert (Job.objects.count(), Slot.objects.count()) == (1, 1)


_READ = """
SELECT (seq_tup_read + coalesce(idx_tup_fetch, 0))::int FROM pg_stat_xact_user_tables
WHERE relname = 'tailrace_jobs_schedule'
"""


def test_those_that_are_not_due_are_not_read() -> None:
    """Without statistics of the table, in which a third of all rows seem to be due."""
    fill(20_000, wait=3600.0)
    fill(5, prefix="due")
    [(before,)] = query(_READ)
    assert schedules.work_off() == 5
    assert schedules.work_off() == 0
    assert ScheduleIsOnTime().find() == []
    [(after,)] = query(_READ)
    assert after - before < 100
