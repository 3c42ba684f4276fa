"""Check and parse times from outside: only times that PostgreSQL can store are accepted."""

from datetime import UTC, datetime, timedelta

LARGEST_OFFSET = timedelta(hours=15, minutes=59)
"""The largest offset from UTC that PostgreSQL accepts. Real time zones have at most 14 hours."""


def in_utc(at: datetime) -> datetime:
    """Return the time in UTC.

    Raises ValueError for a time without a zone, with an offset beyond LARGEST_OFFSET, or whose date
    in UTC is not in the years 1 to 9999.
    """
    offset = at.utcoffset()
    if offset is None:
        raise ValueError("the time has no time zone: add one, such as Z or +02:00")
    if abs(offset) > LARGEST_OFFSET:
        raise ValueError("the time's offset from UTC is beyond 15:59 hours")
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is not in the years 1 to 9999, in UTC") from None


def parse_time(text: str) -> datetime:
    """Return the time in an ISO 8601 text, in UTC. Raises ValueError as `in_utc` does."""
    return in_utc(datetime.fromisoformat(text))
