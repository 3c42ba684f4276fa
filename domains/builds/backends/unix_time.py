"""Convert Unix times of build services."""

from datetime import UTC, datetime
from typing import Any


def unix_time(value: Any) -> datetime | None:
    """Return the time for a number of seconds since 1970, as a number or text; None if invalid."""
    try:
        return datetime.fromtimestamp(int(value), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
