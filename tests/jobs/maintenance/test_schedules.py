"""Each slot runs, is merged, skipped or missed, with a reason."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError

from tailrace.db import clock as events_clock
from tailrace.db.locks import Blocked
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.maintenance.ticking import schedules, tick
from tailrace.jobs.enqueue import InvalidJob, enqueue
from tailrace.jobs.handler import Cron, Every
from tailrace.jobs.models import Job, Queue, Schedule, Slot
from tailrace.jobs.platform.invariants.schedules import ScheduleIsOnTime
from tests.kit import at_once, held
from tests.sandbox.handlers import Fair, Working

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


def test_cron_follows_its_time_zone_through_clock_changes(clock) -> None:
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


def test_a_time_skipped_or_doubled_by_dst_runs_once_a_day(clock) -> None:
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
    assert time.monotonic() - began < 120  # a walk along all slots takes longer
    assert Slot.objects.count() <= 101
    if catch_up == "all":
        assert Job.objects.count() == Slot.objects.count()
    else:  # a slot of this very second is not late
        assert Job.objects.count() in ((1,) if catch_up == "latest" else (0, 1))
        assert Schedule.objects.get().next_run_at > clock.now() - timedelta(minutes=2)


def test_a_slot_is_merged_while_the_last_job_is_live(clock) -> None:
    plan(clock, every_seconds=60)
    schedules.run_due()
    clock.step(60)
    schedules.run_due()
    assert Job.objects.count() == 1
    assert [outcome for _at, outcome in slots()] == ["ran", "merged"]
    assert f"job {Job.objects.get().pk} is not finished yet" in Slot.objects.latest("id").reason


def test_a_slot_of_a_handler_that_only_newer_code_has_is_left_to_it(clock) -> None:
    """For ten minutes; an old worker's tick works off the others meanwhile, and repeats nothing."""
    Queue.objects.create(name="test.newer")  # newer code has migrated
    row = plan(clock, name="newer", every_seconds=60, handler="test.newer")
    plan(clock, name="t", every_seconds=60)
    assert (schedules.run_due(), schedules.run_due()) == (1, 0)
    clock.step(301)
    assert ScheduleIsOnTime().find() == [Schedule.objects.get(name="t").pk]
    tick.tick()
    assert not Slot.objects.filter(schedule=row).exists()
    Schedule.objects.filter(pk=row.pk).update(handler="test.work")  # a worker that knows it
    assert schedules.run_due() == 1
    assert Slot.objects.filter(schedule=row, outcome="ran").count() == 1


def test_a_slot_that_no_worker_can_run_is_skipped_after_ten_minutes(clock) -> None:
    for name, catch_up in (("newest", "latest"), ("all", "all")):
        plan(clock, name=name, every_seconds=60, handler="test.newer", catch_up=catch_up)
    clock.step(630)
    assert schedules.run_due() == 2
    rows = Slot.objects.values_list("schedule__name", "outcome", "reason").order_by("schedule")
    assert list(rows) == [
        (name, "skipped", schedules.HANDLER_UNKNOWN) for name in ("newest", "all")
    ]
    assert schedules.run_due() == 0
    clock.step(60)
    assert schedules.run_due() == 2


def test_a_schedule_of_a_handler_that_is_gone_says_so(clock) -> None:
    Queue.objects.create(name="test.gone", retired_at=clock.now())
    plan(clock, every_seconds=60, handler="test.gone")
    plan(clock, name="t", every_seconds=60)
    assert schedules.run_due() == 2
    assert set(Slot.objects.values_list("outcome", "reason")) == {
        ("skipped", "its handler was removed"),
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
    assert "invalid schedule" in slot.reason
    assert schedules.run_due() == 0


def test_a_scheduled_job_has_the_lane_of_its_payload(clock, monkeypatch) -> None:
    lane_of = {"a": "alice", "b": ""}
    monkeypatch.setattr(Fair, "payload_lane", lambda self, payload: lane_of[payload["note"]])
    for note in ("a", "b", "unknown"):
        payload = {"note": note}
        plan(clock, name=note, handler=Fair.name, payload=payload, every_seconds=60)
    tick.tick()
    jobs = Job.objects.order_by("payload__note").values_list("payload__note", "lane")
    assert list(jobs) == [("a", "alice"), ("b", "-")]
    assert "payload_lane raised" in Slot.objects.get(outcome="skipped").reason


def test_an_enqueued_job_has_the_lane_of_its_payload(monkeypatch) -> None:
    monkeypatch.setattr(Fair, "payload_lane", lambda self, payload: payload["note"])
    enqueue(Fair, {"note": "alice"})
    enqueue(Fair, {"note": "alice"}, lane="bob")
    monkeypatch.setattr(Fair, "payload_lane", lambda self, payload: payload["nothing"])
    with pytest.raises(InvalidJob, match="payload_lane raised"):
        enqueue(Fair, {"note": "alice"})
    assert list(Job.objects.order_by("id").values_list("lane", flat=True)) == ["alice", "bob"]


def test_a_disabled_schedule_does_nothing(clock) -> None:
    plan(clock, every_seconds=60, enabled=False)
    clock.step(1000)
    assert schedules.run_due() == 0


def test_declared_schedules_are_made_changed_and_removed(monkeypatch, clock) -> None:
    monkeypatch.setattr(Working, "schedule", Cron("0 8 * * *", tz="Europe/Berlin"))
    monkeypatch.setattr(Working, "schedule_keys", lambda self: ["a", "b"])
    sync_declared.sync()
    names = ["test.work:a", "test.work:b"]
    created = Schedule.objects.filter(handler="test.work")
    assert sorted(created.values_list("name", flat=True)) == names
    assert all(clock.now() < row.next_run_at < clock.now() + timedelta(days=1) for row in created)
    assert schedules.run_due() == 0

    created.update(enabled=False)
    monkeypatch.setattr(Working, "schedule", Every(30))
    sync_declared.sync()
    row = Schedule.objects.get(name="test.work:a")
    assert (row.every_seconds, row.cron, row.enabled) == (30, "", False)


def _due_keys() -> list[str]:
    """Delete the jobs, work off what is due, and return the routing keys of the new jobs."""
    Job.objects.all().delete()
    schedules.run_due()
    jobs = Job.objects.filter(handler="test.work").order_by("routing_key")
    return list(jobs.values_list("routing_key", flat=True))


def test_what_the_code_no_longer_declares_is_disabled_and_comes_back(monkeypatch, clock) -> None:
    """`migrate` in a shell without the variables that declare it loses neither it nor its slots."""
    monkeypatch.setattr(Working, "schedule", Every(60))
    monkeypatch.setattr(Working, "schedule_keys", lambda self: ["a", "b", "c"])
    sync_declared.sync()
    tick.tick()
    Schedule.objects.filter(name="test.work:c").update(enabled=False)
    before = {row.name: row.pk for row in Schedule.objects.filter(handler="test.work")}
    slots = list(Slot.objects.values_list("pk", "schedule_id"))

    monkeypatch.setattr(Working, "schedule_keys", lambda self: ["a"])
    sync_declared.sync()
    rows = {row.name: row for row in Schedule.objects.filter(handler="test.work")}
    assert {name: (row.enabled, row.retired_at is not None) for name, row in rows.items()} == {
        "test.work:a": (True, False),
        "test.work:b": (False, True),
        "test.work:c": (False, False),  # by an operator
    }
    clock.step(600)
    assert _due_keys() == ["a"]

    monkeypatch.setattr(Working, "schedule_keys", lambda self: ["a", "b", "c"])
    sync_declared.add_missing()
    rows = {row.name: row for row in Schedule.objects.filter(handler="test.work")}
    assert {name: row.pk for name, row in rows.items()} == before
    assert {name: row.enabled for name, row in rows.items()} == {
        "test.work:a": True,
        "test.work:b": True,
        "test.work:c": False,
    }
    assert {row.retired_at for row in rows.values()} == {None}
    assert set(slots) < set(Slot.objects.values_list("pk", "schedule_id"))
    assert _due_keys() == ["b"]  # one run for all slots that it missed


def test_the_schedule_of_a_handler_that_was_removed_is_disabled(clock) -> None:
    row = plan(clock, name="gone", handler="test.gone", owner="code", every_seconds=60)
    sync_declared.add_missing()  # beside which newer code may have migrated
    row.refresh_from_db()
    assert (row.enabled, row.retired_at) == (True, None)
    sync_declared.sync()
    row.refresh_from_db()
    assert (row.enabled, row.retired_at is not None) == (False, True)


@pytest.mark.django_db(transaction=True)
def test_a_process_that_starts_waits_for_no_schedule(monkeypatch) -> None:
    """One that somebody has locked stays as it is until a later try; the others are synced."""
    monkeypatch.setattr(Working, "schedule", Every(60))
    monkeypatch.setattr(Working, "schedule_keys", lambda self: ["a", "b", "c"])
    sync_declared.sync()
    monkeypatch.setattr(Working, "schedule", Every(30))
    monkeypatch.setattr(Working, "schedule_keys", lambda self: ["a", "b", "d"])

    def seconds() -> dict[str, float]:
        rows = Schedule.objects.filter(handler="test.work", enabled=True)
        return dict(rows.values_list("routing_key", "every_seconds"))

    def start_beside_the_lock() -> None:
        with pytest.raises(Blocked, match=r"has locked these schedules: .*test\.work:a"):
            sync_declared.add_missing()

    names = ["test.work:a", "test.work:c"]
    with held("SELECT 1 FROM tailrace_jobs_schedule WHERE name = ANY(%s) FOR UPDATE", names):
        at_once(1, lambda _: start_beside_the_lock(), seconds=30)
        assert seconds() == {"a": 60, "b": 30, "c": 60, "d": 30}
        at_once(1, lambda _: sync_declared.sync(), seconds=30)
    sync_declared.add_missing()
    assert seconds() == {"a": 30, "b": 30, "d": 30}


@pytest.mark.django_db(transaction=True)
def test_a_process_that_starts_locks_no_schedule_that_is_as_declared(monkeypatch) -> None:
    monkeypatch.setattr(Working, "schedule", Every(60))
    sync_declared.sync()
    with held("SELECT 1 FROM tailrace_jobs_schedule WHERE name = 'test.work' FOR UPDATE"):
        at_once(1, lambda _: sync_declared.add_missing(), seconds=30)


@pytest.mark.django_db(transaction=True)
def test_several_ticks_at_once_make_one_job_per_slot(clock) -> None:
    for number in range(20):
        plan(clock, name=f"s{number}", every_seconds=60, routing_key=str(number))
    at_once(5, lambda _: tick.tick())
    assert Job.objects.count() == 20 == Slot.objects.count()


@pytest.mark.parametrize("timing", [{}, {"every_seconds": 5, "cron": "0 8 * * *"}])
def test_a_schedule_has_an_interval_or_cron_but_not_both(timing: dict) -> None:
    with pytest.raises(IntegrityError, match="schedule_by_interval_or_cron"):
        Schedule.objects.create(name="x", handler="test.work", **timing)
