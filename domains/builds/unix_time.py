"""Read times as build services send them."""

from datetime import UTC, datetime
from typing import Any


def unix_time(value: Any) -> datetime | None:
    """Return the time of a number of seconds, which may be text; None if it is not valid."""
    try:
        return datetime.fromtimestamp(int(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
