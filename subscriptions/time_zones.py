"""The names of time zones that people and plans may have."""

from functools import cache
from zoneinfo import available_timezones


@cache
def time_zone_names() -> frozenset[str]:
    """Return all names of the time zone database, such as Europe/Berlin. The database's files are
    read once in each process: that takes some milliseconds."""
    return frozenset(available_timezones())
