"""When the jobs of a plan run.

A job runs at its regular times, in the time zone of the subscription: every day, every week on the
weekday of the anchor day, or every month on the anchor day. From one regular time to the next is a
period, in which it runs at most once. The times are spread over WINDOW_HOURS of the night, by the
name of the schedule: it is of the subscription and the handler, so a change of plan keeps them.
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from tailrace.jobs.models import Schedule
from tailrace.subscriptions.models import PlanJob

WINDOW_START, WINDOW_HOURS = 1, 4
"""The hour at which the window begins, and its length."""
SOON = timedelta(hours=1)
"""The first run of a job comes within this time."""
NEAR = 2 * SOON
"""A regular time that is nearer than this is the first run."""
LAST_DAYS = 29
"""From this anchor day on, a monthly job runs on the last day of the month: every month has one."""


def cron_of(frequency: str, anchor_day: int) -> str:
    """Return the cron expression of the beginning of the window.

    The weekday of a day is that of a month which begins on a Monday: 1 is Monday, 7 Sunday.
    """
    if frequency == PlanJob.Frequency.DAILY:
        days = "* * *"
    elif frequency == PlanJob.Frequency.WEEKLY:
        days = f"* * {anchor_day % 7}"
    else:
        days = "L * *" if anchor_day >= LAST_DAYS else f"{anchor_day} * *"
    return f"0 {WINDOW_START} {days}"


def next_run(
    schedule: Schedule, now: datetime, last_run: datetime | None, due: datetime | None = None
) -> datetime:
    """Return the next run of a schedule that is new, or whose times changed at `now`.

    `due` is its next run by the times before. If it has come it stays, as if it had been handled in
    time. If the job has run in the present period, the next run is the next regular time. If not,
    it comes soon, or at the next regular time if that is near.
    """
    if due is not None and due <= now:
        return due
    if last_run is not None and (regular := schedule.slot_after(last_run)) > now:
        return regular
    if _may_be_near(schedule, now) and (regular := schedule.slot_after(now)) <= now + NEAR:
        return regular
    soon = now + schedule.offset / WINDOW_HOURS  # the offset is less than the window
    return soon if due is None else min(soon, due)


def _may_be_near(schedule: Schedule, now: datetime) -> bool:
    """Whether the regular time of some day is near: most often it is not, and no cron is read."""
    local = (now - schedule.offset).astimezone(ZoneInfo(schedule.time_zone))
    away = (WINDOW_START * 60 - local.hour * 60 - local.minute) % (24 * 60)
    return timedelta(minutes=away) <= NEAR + timedelta(hours=1)  # an hour for clocks turned back
