"""The database's clock, for decisions, and the process's clock, for texts.

PostgreSQL's clock decides whether something is due, late, expired or missed: use `NOW` in a
statement and `tailrace.db.query.database_now()` in Python. So a wrong clock on one machine changes
no decision. `now()` is only for texts and records. `offset` is zero except in tests, which shift
both clocks with it.
"""

from datetime import UTC, datetime, timedelta

DAY_SECONDS = 86_400.0
offset: float = 0.0
"""Seconds ahead of the real time."""

NOW = "(statement_timestamp() + make_interval(secs => %(clock)s))"
"""SQL for the current time; `tailrace.db.query` adds its parameter."""


def now() -> datetime:
    """Return the time of this process, aware and in UTC, for texts and records.

    It may be wrong by minutes. For decisions, use `tailrace.db.query.database_now()`.
    """
    return datetime.now(UTC) + timedelta(seconds=offset)
