"""The time, as the database tells it.

Every comparison of times is made by PostgreSQL's clock, so that a machine whose clock is wrong
does no harm. `offset` is zero but in tests, which move time by stepping it.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

offset: float = 0.0
"""Seconds ahead of the real time."""

NOW = "(statement_timestamp() + make_interval(secs => %(clock)s))"
"""SQL for now; a statement that uses it takes `clock.params()`."""


def params() -> dict[str, Any]:
    """Return the parameters that NOW needs."""
    return {"clock": offset}


def now() -> datetime:
    """Return this process's idea of now, aware and in UTC: for words and waits, not for claims."""
    return datetime.now(UTC) + timedelta(seconds=offset)
