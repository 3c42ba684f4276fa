"""Compute the times of slots; pure functions.

The time of a slot is its *nominal* time, by the interval or the cron expression, plus the offset of
its schedule. The offset is a fixed part of the schedule's spread, which depends on its name.
"""

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import blake2b
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

SHORTEST, LONGEST = 0.001, 100 * 366 * 86_400.0
"""The shortest and the longest interval, in seconds."""
MOST_SPREAD = 31 * 86_400.0
"""The longest spread, in seconds."""


def offset(name: str, spread: float) -> timedelta:
    """Return an offset of whole seconds, from 0 to less than `spread`: always the same for a name.
    Raises ValueError or OverflowError if the spread is not a finite number."""
    if not spread:
        return timedelta()
    share = int.from_bytes(blake2b(name.encode(), digest_size=4).digest()) / 2**32
    return timedelta(seconds=int(spread * share))


def nominal_after(at: datetime, every: float | None, cron: str, time_zone: str) -> datetime:
    """Return the first nominal time after the nominal time `at`, in UTC. Raises ValueError or
    OverflowError if there is none."""
    if every is None:
        return _cron_after(cron, time_zone, at)
    step = timedelta(seconds=every)
    if step <= timedelta():
        raise ValueError(f"an interval of {every} s is too short")
    return at + step


def nominals_after(
    at: datetime, every: float | None, cron: str, time_zone: str
) -> Iterator[datetime]:
    """Yield all nominal times after `at`, without end. Raises as `nominal_after`."""
    while True:
        at = nominal_after(at, every, cron, time_zone)
        yield at


def _cron_after(cron: str, time_zone: str, at: datetime) -> datetime:
    slot = _cached_cron_after(cron, time_zone, at)
    if isinstance(slot, str):
        raise ValueError(slot)
    return slot


# Many schedules have the same expression and the same last slot. Errors are cached, too: the search
# takes the longest if there is no slot.
@lru_cache(maxsize=20_000)
def _cached_cron_after(cron: str, time_zone: str, at: datetime) -> datetime | str:
    try:
        return next(CronSim(cron, at.astimezone(ZoneInfo(time_zone)))).astimezone(UTC)
    except StopIteration:
        return f"{cron!r} has no slot in the next 50 years"
    except (ValueError, KeyError, OSError, OverflowError, CronSimError) as error:
        return f"{cron!r} in {time_zone!r} is not a valid schedule: {error}"


def problems(every: float | None, cron: str, time_zone: str, spread: float) -> dict[str, str]:
    """Return an error message for each invalid field, by the name of the field."""
    wrong: dict[str, str] = {}
    if (every is None) != bool(cron):
        wrong["cron"] = "set either every_seconds (above 0) or cron"
    elif every is not None and not SHORTEST <= every <= LONGEST:
        wrong["every_seconds"] = f"{every} is not between {SHORTEST} seconds and 100 years"
    try:
        ZoneInfo(time_zone)
    except (ValueError, KeyError, OSError):
        wrong["time_zone"] = f"{time_zone!r} is not a time zone; an example: Europe/Berlin"
    if cron and isinstance(_cached_cron_after(cron, "UTC", _ANY_TIME), str):
        wrong["cron"] = f"{cron!r} is not a cron expression; an example: 0 8 * * 1-5"
    if not (math.isfinite(spread) and 0 <= spread <= MOST_SPREAD):
        wrong["spread"] = f"{spread} is not between 0 and {MOST_SPREAD:.0f} seconds (31 days)"
    return wrong


_ANY_TIME = datetime(2026, 1, 1, tzinfo=UTC)
