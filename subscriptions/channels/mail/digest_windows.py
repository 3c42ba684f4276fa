"""The times at which digests are sent, in a user's time zone."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from tailrace.subscriptions.models import EventSubscription, Preferences
from tailrace.web.accounts.time_zones import zone_named

Pace = EventSubscription.Pace


def window_end(now: datetime, pace: str, preferences: Preferences) -> datetime:
    """Return the end of the window that contains `now` (aware): the next time of that pace.

    Each day has exactly one such local time. If a change of clocks skips it, it is moved to later
    by the skipped time; if it occurs twice, the first occurrence is used.
    """
    if pace == Pace.HOURLY:
        return now.astimezone(UTC).replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    zone = zone_named(preferences.time_zone)
    day = now.astimezone(zone).date()
    if pace == Pace.WEEKLY:
        day += timedelta((preferences.digest_weekday - day.weekday()) % 7)
    step = timedelta(7 if pace == Pace.WEEKLY else 1)
    end = _at(day, preferences.digest_at, zone)
    return end if end > now else _at(day + step, preferences.digest_at, zone)


def _at(day: date, at: time, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, at, zone).astimezone(UTC)
