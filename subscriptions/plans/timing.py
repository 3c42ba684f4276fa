"""The times at which the jobs of a plan run.

A job runs at its regular times, in the time zone of the subscription: every day, every week on the
weekday of the anchor day, or every month on the anchor day. The time from one regular time to the
next is a period, in which the job runs at most once. The regular times are spread over WINDOW_HOURS
of the night by the name of the schedule. The name consists of subscription and handler, so a change
of plan does not change the times.
"""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from tailrace.jobs.models import Schedule
from tailrace.subscriptions.models import PlanJob

WINDOW_START, WINDOW_HOURS = 1, 4
"""The hour at which the window begins, and its length."""
SOON = timedelta(hours=1)
"""A job first runs within this time."""
NEAR = 2 * SOON
"""If the next regular time is within this time, the job first runs then."""
LAST_DAYS = 29
"""From this anchor day on, a monthly job runs on the last day of the month."""


def cron_of(frequency: str, anchor_day: int) -> str:
    """Return the cron expression of the window's start. Anchor day 1 is Monday, 8 Monday again …"""
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

    `due` is the next run by its old times; if it is in the past, it is returned unchanged. If the
    job has run in the current period, the next run is the next regular time. Otherwise it is within
    an hour, or at the next regular time if this is within NEAR.
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
    """Return False if no day's regular time is within NEAR: cheaper than the cron expression."""
    local = (now - schedule.offset).astimezone(ZoneInfo(schedule.time_zone))
    away = (WINDOW_START * 60 - local.hour * 60 - local.minute) % (24 * 60)
    return timedelta(minutes=away) <= NEAR + timedelta(hours=1)  # clocks may be set back an hour
