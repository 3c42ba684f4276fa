"""schedules: each slot runs, merges, is skipped or missed, and says which."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError

from events import clock as events_clock
from jobs import schedules, sync, tick
from jobs.handler import Cron, Every
from jobs.models import Job, Schedule, Slot
from tests.kit import at_once
from tests.sandbox.handlers import Working

pytestmark = pytest.mark.django_db


def at(clock, text: str) -> datetime:
    """Move the clock to a time (UTC)."""
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    clock.step((moment - clock.now()).total_seconds())
    return moment


def plan(clock, **fields: object) -> Schedule:
    fields = {"name": "s", "handler": "test.work", "next_run_at": clock.now()} | fields
    return Schedule.objects.create(**fields)


def slots() -> list[tuple[str, str]]:
    rows = Slot.objects.order_by("at", "id").values_list("at", "outcome")
    return [(f"{moment:%m-%d %H:%M}", outcome) for moment, outcome in rows]


def finish() -> None:
    Job.objects.update(state="completed", finished_at=events_clock.now())


def test_an_interval_makes_a_job_per_slot(clock, run_jobs) -> None:
    plan(clock, every_seconds=60, payload={"note": "mine"})
    for _ in range(3):
        assert schedules.run_due() == 1
        assert schedules.run_due() == 0
        assert run_jobs("test.work") == 1
        clock.step(60)
    assert Job.objects.filter(state="completed", payload__note="mine").count() == 3
    assert [outcome for _at, outcome in slots()] == ["ran"] * 3
    assert set(Slot.objects.values_list("job", flat=True)) == set(
        Job.objects.values_list("id", flat=True)
    )


def test_a_cron_expression_follows_its_time_zone_through_the_change_of_the_clocks(clock) -> None:
    start = at(clock, "2027-03-26T06:30")
    plan(clock, cron="0 8 * * *", time_zone="Europe/Berlin", next_run_at=start)
    Schedule.objects.update(next_run_at=Schedule.objects.get().slot_after(start))
    for _ in range(95):
        clock.step(3600)
        schedules.run_due()
        finish()
    assert slots() == [
        ("03-26 07:00", "ran"),
        ("03-27 07:00", "ran"),
        ("03-28 06:00", "ran"),
        ("03-29 06:00", "ran"),
    ]


def test_a_time_that_the_change_of_the_clocks_skips_or_doubles_runs_once_a_day(clock) -> None:
    for day, count in (("2027-03-27T12:00", 2), ("2027-10-30T12:00", 2)):
        Schedule.objects.all().delete()
        start = at(clock, day)
        row = plan(clock, cron="30 2 * * *", time_zone="Europe/Berlin", next_run_at=start)
        Schedule.objects.update(next_run_at=row.slot_after(start))
        for _ in range(2 * 24 - 4):
            clock.step(3600)
            schedules.run_due()
            finish()
        assert Slot.objects.filter(schedule=row, outcome="ran").count() == count


def test_latest_runs_once_for_all_that_was_missed(clock) -> None:
    plan(clock, every_seconds=60)
    clock.step(605)
    schedules.run_due()
    assert Job.objects.count() == 1
    assert [outcome for _at, outcome in slots()] == ["merged"] * 10 + ["ran"]
    clock.step(60)
    assert schedules.run_due() == 1


def test_all_runs_each_slot_a_hundred_at_a_time(clock) -> None:
    plan(clock, every_seconds=60, catch_up="all")
    clock.step(60 * 250 + 1)
    counts = []
    for _ in range(4):
        schedules.run_due()
        counts.append(Job.objects.count())
    assert counts == [100, 200, 251, 251]
    assert Job.objects.values("slot").distinct().count() == 251


def test_skip_misses_what_is_late(clock) -> None:
    plan(clock, cron="0 * * * *", catch_up="skip", next_run_at=at(clock, "2027-01-01T00:00"))
    at(clock, "2027-01-01T03:30")
    schedules.run_due()
    assert not Job.objects.exists()
    assert slots() == [(f"01-01 0{hour}:00", "missed") for hour in range(4)]
    at(clock, "2027-01-01T04:00:10")
    schedules.run_due()
    assert slots()[-1] == ("01-01 04:00", "ran")


@pytest.mark.parametrize(
    "timing",
    [{"every_seconds": 1}, {"cron": "* * * * *"}, {"cron": "0 0 1 * *"}, {"every_seconds": 0.01}],
    ids=str,
)
@pytest.mark.parametrize("catch_up", ["latest", "skip", "all"])
def test_a_downtime_of_three_years_costs_little(clock, timing, catch_up: str) -> None:
    clock.step(3 * 365 * 86400)
    plan(clock, **timing, catch_up=catch_up, next_run_at=datetime.now(UTC))
    began = time.monotonic()
    schedules.run_due()
    assert time.monotonic() - began < 2
    assert Slot.objects.count() <= 101
    if catch_up == "all":
        assert Job.objects.count() == Slot.objects.count()
    else:  # a slot of this very second is not late
        assert Job.objects.count() in ((1,) if catch_up == "latest" else (0, 1))
        assert Schedule.objects.get().next_run_at > clock.now() - timedelta(seconds=2)


def test_a_slot_is_merged_while_the_last_job_is_live(clock) -> None:
    plan(clock, every_seconds=60)
    schedules.run_due()
    clock.step(60)
    schedules.run_due()
    assert Job.objects.count() == 1
    assert [outcome for _at, outcome in slots()] == ["ran", "merged"]
    assert f"job {Job.objects.get().pk} is still live" in Slot.objects.latest("id").reason


def test_a_schedule_of_a_handler_that_is_gone_says_so(clock) -> None:
    plan(clock, every_seconds=60, handler="test.gone")
    plan(clock, name="t", every_seconds=60)
    assert schedules.run_due() == 2
    assert set(Slot.objects.values_list("outcome", "reason")) == {
        ("skipped", "its handler is gone"),
        ("ran", ""),
    }


@pytest.mark.parametrize(
    "broken", [{"cron": "0 0 30 2 *"}, {"cron": "x"}, {"time_zone": "No/Where"}]
)
def test_a_broken_schedule_hinders_no_other(clock, broken: dict) -> None:
    plan(clock, **({"cron": "0 0 1 1 *"} | broken))
    plan(clock, name="t", every_seconds=60)
    tick.tick()
    assert Job.objects.count() == 1
    slot = Slot.objects.get(outcome="skipped")
    assert "is no schedule" in slot.reason
    assert schedules.run_due() == 0


def test_a_disabled_schedule_does_nothing(clock) -> None:
    plan(clock, every_seconds=60, enabled=False)
    clock.step(1000)
    assert schedules.run_due() == 0


def test_declared_schedules_are_made_changed_and_removed(monkeypatch, clock) -> None:
    monkeypatch.setattr(Working, "schedule", Cron("0 8 * * *", tz="Europe/Berlin"))
    monkeypatch.setattr(Working, "schedule_keys", lambda self: ["a", "b"])
    sync.sync()
    names = ["test.work:a", "test.work:b"]
    made = Schedule.objects.filter(handler="test.work")
    assert sorted(made.values_list("name", flat=True)) == names
    assert all(clock.now() < row.next_run_at < clock.now() + timedelta(days=1) for row in made)
    assert schedules.run_due() == 0

    made.update(enabled=False)
    monkeypatch.setattr(Working, "schedule", Every(30))
    sync.sync()
    row = Schedule.objects.get(name="test.work:a")
    assert (row.every_seconds, row.cron, row.enabled) == (30, "", False)

    monkeypatch.setattr(Working, "schedule_keys", lambda self: ["a"])
    sync.sync()
    assert list(Schedule.objects.filter(handler="test.work").values_list("name", flat=True)) == [
        "test.work:a"
    ]


@pytest.mark.django_db(transaction=True)
def test_several_ticks_at_once_make_one_job_per_slot(clock) -> None:
    for number in range(20):
        plan(clock, name=f"s{number}", every_seconds=60, routing_key=str(number))
    at_once(5, lambda _: tick.tick())
    assert Job.objects.count() == 20 == Slot.objects.count()


@pytest.mark.parametrize("timing", [{}, {"every_seconds": 5, "cron": "0 8 * * *"}])
def test_the_database_refuses_a_schedule_with_neither_or_both_timings(timing: dict) -> None:
    with pytest.raises(IntegrityError, match="schedule_by_interval_or_cron"):
        Schedule.objects.create(name="x", handler="test.work", **timing)
