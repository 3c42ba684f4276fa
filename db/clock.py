"""The database's clock decides what is due, late, expired or missed: use `NOW` in a statement and
`tailrace.db.query.database_now()` in Python. The process's clock, `now()`, is only for texts and
records: so a wrong clock on one machine changes no decision. Tests shift both by `offset`."""

from datetime import UTC, datetime, timedelta

DAY_SECONDS = 86_400.0
offset: float = 0.0
"""Seconds ahead of the real time."""

NOW = "(statement_timestamp() + make_interval(secs => %(clock)s))"
"""SQL for the current time; `tailrace.db.query` adds its parameter."""


def now() -> datetime:
    """Return the time of this process, aware and in UTC, for texts and records. It may be wrong by
    minutes."""
    return datetime.now(UTC) + timedelta(seconds=offset)
