"""The schedules of a subscription: exactly the table's, with no run doubled and none lost."""

from datetime import timedelta

import pytest

from tailrace.jobs.engine.maintenance.ticking import schedules as tick
from tailrace.subscriptions.plans import status
from tailrace.subscriptions.plans.timing import cron_of
from tests.subscriptions.plans.kit import (
    HOME,
    REPORT,
    crons,
    jobs,
    let_run,
    make_plans,
    now_is,
    schedule,
    schedules,
    subscribe,
    table_of,
)  # fmt: skip

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def plans() -> dict:
    return make_plans()


@pytest.mark.parametrize("plan", ["basic", "plus", "premium"])
def test_the_schedules_are_those_of_the_table(plan: str) -> None:
    row = subscribe(plan)
    assert crons(row) == table_of(plan)
    scan = schedule(row)
    assert scan.payload["account"] == row.account_id
    assert (scan.time_zone, scan.spread, scan.catch_up) == ("UTC", 4 * 3600, "latest")


@pytest.mark.parametrize(
    ("frequency", "day", "cron"),
    [
        ("daily", 31, "0 1 * * *"),
        ("weekly", 1, "0 1 * * 1"),
        ("weekly", 7, "0 1 * * 0"),
        ("weekly", 8, "0 1 * * 1"),
        ("monthly", 28, "0 1 28 * *"),
        ("monthly", 29, "0 1 L * *"),
        ("monthly", 31, "0 1 L * *"),
    ],
)
def test_the_anchor_day_as_a_cron_expression(frequency: str, day: int, cron: str) -> None:
    assert cron_of(frequency, day) == cron


def test_the_last_day_of_each_month_in_the_time_zone_of_the_subscription(clock) -> None:
    now_is(clock, "2027-01-31T20:00:00")
    row = subscribe("basic", anchor_day=31, time_zone="America/New_York")
    let_run(clock)
    slots = schedule(row).slots_after(now_is(clock, "2027-02-01T12:00:00"))
    offset = schedule(row).offset
    assert [f"{next(slots) - offset:%m-%d %H}" for _ in range(3)] == [
        "02-28 06",
        "03-31 05",
        "04-30 05",
    ]


def test_the_times_of_many_are_spread_over_the_window() -> None:
    offsets = {schedule(subscribe()).offset for _ in range(40)}
    assert len({offset // HOUR for offset in offsets}) == 4
    assert len(offsets) > 30


def test_the_first_run_comes_within_an_hour_and_the_next_at_the_regular_time(clock) -> None:
    now = now_is(clock, "2027-01-20T12:00:00")
    row = subscribe("premium")
    assert now <= schedule(row).next_run_at <= now + HOUR
    let_run(clock, 1.5)
    assert jobs().count() == 1
    assert schedule(row).next_run_at == now + 13 * HOUR + schedule(row).offset


def test_a_first_run_near_the_regular_time_is_that_one(clock) -> None:
    now = now_is(clock, "2027-01-10T00:30:00")
    row = subscribe("basic")
    regular = now + HOUR / 2 + schedule(row).offset
    near = regular <= now + 2 * HOUR
    assert (schedule(row).next_run_at == regular) == near


@pytest.mark.parametrize(("first", "second"), [("basic", "premium"), ("premium", "basic")])
def test_what_ran_today_does_not_run_again_today(clock, first: str, second: str) -> None:
    now_is(clock, "2027-01-20T12:00:00")
    row = subscribe(first)
    let_run(clock, 2)
    assert jobs().update(state="completed", finished_at=clock.now()) == 1
    status.change([row.pk], plan=_plan(second))
    assert crons(row) == table_of(second)
    let_run(clock, 10)
    assert jobs().count() == 1, "until midnight"


def test_an_upgrade_runs_soon_what_has_not_run_in_its_new_period(clock) -> None:
    now_is(clock, "2027-01-20T12:00:00")
    row = subscribe("basic")
    let_run(clock, 2)
    now = now_is(clock, "2027-01-25T12:00:00")
    status.change([row.pk], plan=_plan("premium"))
    assert now <= schedule(row).next_run_at <= now + HOUR
    assert now <= schedule(row, REPORT).next_run_at <= now + HOUR


def test_a_downgrade_waits_for_the_next_period(clock) -> None:
    now_is(clock, "2027-01-20T12:00:00")
    row = subscribe("premium")
    let_run(clock, 24)
    waiting = jobs(REPORT).get()
    status.change([row.pk], plan=_plan("basic"))
    assert crons(row) == table_of("basic")
    next_run = now_is(clock, "2027-02-10T01:00:00") + schedule(row).offset
    assert schedule(row).next_run_at == next_run
    waiting.refresh_from_db()
    assert (waiting.state, waiting.error) == ("cancelled", "not part of the plan")
    assert set(jobs().values_list("state", flat=True)) == {"pending"}, "what stays in the plan"


def test_a_slot_that_is_due_is_run_once_whatever_the_plan_is_now(clock) -> None:
    now_is(clock, "2027-01-18T12:00:00")
    row = subscribe("premium")
    let_run(clock, 2)
    done = jobs().get()
    done.state = "completed"
    done.save()
    now_is(clock, "2027-01-19T12:00:00")  # and no tick came
    status.change([row.pk], plan=_plan("plus"))
    assert tick.run_due()
    assert jobs().count() == 2
    let_run(clock, 12)
    assert jobs().count() == 2


def test_what_does_not_change_is_not_touched(clock) -> None:
    row = subscribe("plus")
    before = list(schedules(row).order_by("pk").values())
    clock.step(60)
    status.mark_past_due([row.pk])
    status.resume([row.pk])
    assert list(schedules(row).order_by("pk").values()) == before


def test_a_job_that_comes_back_to_the_plan_does_not_run_twice_in_its_period(clock) -> None:
    now_is(clock, "2027-01-20T12:00:00")
    row = subscribe("premium")
    let_run(clock, 2)
    done = jobs(REPORT).get()
    done.state = "completed"
    done.save()
    status.change([row.pk], plan=_plan("basic"))
    assert REPORT not in crons(row)
    clock.step(3600)
    status.change([row.pk], plan=_plan("premium"))
    assert schedule(row, REPORT).next_run_at > now_is(clock, "2027-01-27T00:00:00")
    assert HOME in crons(row)


def test_a_run_that_was_cancelled_with_the_plan_is_made_up_for(clock) -> None:
    now_is(clock, "2027-01-20T12:00:00")
    row = subscribe("premium")
    let_run(clock, 2)
    status.cancel([row.pk])
    assert list(jobs().values_list("state", "error")) == [
        ("cancelled", "the subscription to the plan was cancelled")
    ]
    assert not schedules(row).exists()
    status.resume([row.pk])
    assert schedule(row).next_run_at <= now_is(clock, "2027-01-20T16:05:00")


def _plan(name: str):
    from tailrace.subscriptions.models import Plan

    return Plan.objects.get(name=name)
