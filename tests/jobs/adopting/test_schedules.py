"""What the schedules of beat become."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from celery import Celery
from celery.schedules import crontab, schedule
from django_celery_beat import models as beat

from tailrace.jobs.platform.adopting.report import report_on
from tailrace.jobs.platform.adopting.schedules import ScheduleReport
from tests.jobs.adopting.shop import app

pytestmark = pytest.mark.django_db

START = datetime(2026, 12, 1, 6, tzinfo=UTC)
TASK = "stall.send_receipt"


@pytest.fixture(autouse=True)
def shop() -> Celery:
    app.conf.beat_schedule = {}
    return app


def reports() -> dict[str, ScheduleReport]:
    return {each.name: each for each in report_on(app, ask_workers=False).schedules}


def of_setting(when, task: str = TASK, **options) -> ScheduleReport:
    app.conf.beat_schedule = {"mine": {"task": task, "schedule": when, **options}}
    return reports()["mine"]


def row(**fields) -> ScheduleReport:
    beat.PeriodicTask.objects.create(**{"name": "row", "task": TASK, **fields})
    return reports()["row"]


def every(number: int = 10, period: str = "minutes") -> beat.IntervalSchedule:
    return beat.IntervalSchedule.objects.create(every=number, period=period)


@pytest.mark.parametrize(
    ("when", "becomes"),
    [
        (30, "every 30 s"),
        (timedelta(hours=2), "every 7200 s"),
        (schedule(1.5), "every 1.5 s"),
        (crontab(), "cron '* * * * *' in Europe/Berlin"),
        (crontab(minute=0, hour="3,15"), "cron '0 3,15 * * *' in Europe/Berlin"),
        (crontab(minute="*/15", hour={8, 9}), "cron '*/15 8,9 * * *' in Europe/Berlin"),
        (crontab(0, 7, day_of_week="mon-fri"), "cron '0 7 * * mon-fri' in Europe/Berlin"),
        (crontab(0, 0, day_of_month="1, 15"), "cron '0 0 1,15 * *' in Europe/Berlin"),
    ],
)
def test_intervals_and_crontabs_become_schedules(when, becomes: str) -> None:
    report = of_setting(when)
    assert (report.moves, report.becomes) == (True, f"a schedule: {becomes}")
    assert report.source == "beat_schedule"


class Tides(schedule):
    pass


@pytest.mark.parametrize(
    ("when", "why"),
    [
        (crontab(0, 0, day_of_week="5", day_of_month="13"), "days that match both fields"),
        (schedule(60, relative=True), "rounded to whole units"),
        (Tides(60), "its class Tides is the project's own"),
    ],
)
def test_what_no_schedule_expresses_stays_in_beat(when, why: str) -> None:
    report = of_setting(when)
    assert not report.moves
    assert report.becomes.startswith("stays in beat, which goes on sending its task: ")
    assert why in report.becomes


def test_options_are_named() -> None:
    options = {"expires": 90, "queue": "media", "priority": 7, "exchange": "x"}
    report = of_setting(60, options=options)
    assert report.notes == (
        "each job expires 90 s after its slot",
        "its jobs are run by workers of the queue 'media'",
        "its priority has no effect: all jobs of a task's schedules have the same",
        "its exchange has no meaning",
    )
    assert report.queue == "media"


def test_the_task_must_exist_and_be_able_to_move() -> None:
    unknown = of_setting(60, "stall.send_receit")
    assert unknown.is_obstacle
    assert "no task has this name; did you mean 'stall.send_receipt'?" in unknown.becomes
    assert not of_setting(60, "stall.of_base").moves
    assert "Celery's own" in of_setting(60, "celery.backend_cleanup").becomes


def test_rows_of_django_celery_beat_become_schedules() -> None:
    report = row(interval=every(), expire_seconds=30, start_time=START)
    assert (report.moves, report.becomes) == (True, "a schedule: every 600 s")
    assert report.source == "django_celery_beat"
    assert report.notes == (
        "its first slot is not before 2026-12-01 06:00 UTC",
        "each job expires 30 s after its slot",
    )


def test_a_crontab_keeps_the_time_zone_of_its_row() -> None:
    nightly = beat.CrontabSchedule.objects.create(minute="30", hour="2", timezone="Asia/Tokyo")
    assert row(crontab=nightly).becomes == "a schedule: cron '30 2 * * *' in Asia/Tokyo"


ONCE = "stays in beat, which goes on sending its task once, and that becomes one job"


def test_a_clocked_row_stays_in_beat() -> None:
    clocked = beat.ClockedSchedule.objects.create(clocked_time=START)
    report = row(clocked=clocked, one_off=True)
    assert (report.moves, report.becomes) == (False, ONCE)
    assert report.timing == "clocked 2026-12-01 06:00:00 UTC"


def test_a_one_off_row_stays_in_beat() -> None:
    assert row(interval=every(2, "hours"), one_off=True).becomes == ONCE


def test_a_row_with_an_end_stays_in_beat() -> None:
    report = row(interval=every(), expires=START)
    assert not report.moves
    assert "it ends at 2026-12-01 06:00 UTC, and schedules have no end" in report.becomes


def test_a_solar_row_stays_in_beat() -> None:
    sunset = beat.SolarSchedule.objects.create(event="sunset", latitude=52.5, longitude=13.4)
    report = row(solar=sunset)
    assert not report.moves
    assert report.becomes.endswith("no schedule of Tailrace follows the sun")
    assert report.timing == "Sunset (52.500000, 13.400000)"


def test_a_disabled_row_becomes_nothing() -> None:
    report = row(interval=every(), enabled=False)
    assert (report.moves, report.becomes) == (False, "nothing: it is disabled")


def test_arguments_of_a_row_that_cannot_be_read_are_named() -> None:
    report = row(interval=every(), args=json.dumps([1])[:-1])
    assert not report.moves
    assert "it cannot be read: Expecting ',' delimiter" in report.becomes


def test_an_entry_whose_row_was_changed_is_that_of_the_row() -> None:
    app.conf.beat_schedule = {"row": {"task": TASK, "schedule": 60}}
    assert row(interval=every()).becomes == "a schedule: every 600 s"
