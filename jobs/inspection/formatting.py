"""Durations, times and counts as people read them, on pages and in commands."""

from datetime import datetime

from db import clock

_UNITS = ((86_400, "d"), (3600, "h"), (60, "min"))


def duration(seconds: float | None) -> str:
    """Return seconds as `850 ms`, `12 s`, `3 min`, `5 h` or `2 d`; a dash for None."""
    if seconds is None:
        return "–"
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def ago(at: datetime | None) -> str:
    """Return how long ago a time was: `12 s ago`, or `in 3 min` for a future time."""
    if at is None:
        return "–"
    seconds = (clock.now() - at).total_seconds()
    if seconds < -1:
        return f"in {duration(-seconds)}"
    return "now" if seconds < 1 else f"{duration(seconds)} ago"


def capped(count: int, limit: int = 10_000) -> str:
    """Return a count that stops at `limit`, with a plus when it has reached it."""
    return f"{count:,}+" if count >= limit else f"{count:,}"
