"""The clock of the database, which takes every decision, and that of this process, for texts.

What is due, late, expired or missed is decided by PostgreSQL's clock: in a statement by `NOW`, in
Python by `tailrace.db.query.database_now()`. So a machine with a wrong clock neither hurries nor
delays anything. `now()` is for what people read and for records. `offset` is zero except in tests,
which move both clocks with it.
"""

from datetime import UTC, datetime, timedelta

offset: float = 0.0
"""Seconds ahead of the real time."""

NOW = "(statement_timestamp() + make_interval(secs => %(clock)s))"
"""SQL for now; `tailrace.db.query` adds the parameter that it needs."""


def now() -> datetime:
    """Return the time of this process, aware and in UTC: for texts and records, which may be wrong
    by minutes. Decisions take `tailrace.db.query.database_now()`."""
    return datetime.now(UTC) + timedelta(seconds=offset)
