"""Time limits of statements, so that a slow or blocked statement does not delay other work."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import DatabaseError

from tailrace.db import connections
from tailrace.db.query import query


@contextmanager
def time_limits(statement: float, lock: float) -> Iterator[None]:
    """Run the block in a transaction with limits in seconds for each statement and each lock wait.

    A statement that exceeds a limit raises OperationalError.
    """
    with connections.atomic():
        query(
            "SELECT set_config('statement_timeout', %(statement)s, true),"
            " set_config('lock_timeout', %(lock)s, true)",
            statement=f"{int(statement * 1000)}ms",
            lock=f"{int(lock * 1000)}ms",
        )
        yield


@contextmanager
def statement_limit(seconds: float) -> Iterator[None]:
    """Limit each statement of the block to `seconds`, unless the caller's limit is shorter, which
    is restored afterwards. The caller must have opened a transaction."""
    [(own, _limit)] = query(
        """
        SELECT own, set_config('statement_timeout', CASE
          WHEN own::interval BETWEEN '1 ms' AND make_interval(secs => %(seconds)s) THEN own
          ELSE round(1000 * %(seconds)s)::text END, true)
        FROM (SELECT current_setting('statement_timeout') AS own) caller""",
        seconds=seconds,
    )
    yield
    query("SELECT set_config('statement_timeout', %(own)s, true)", own=own)


def reason(error: Exception) -> str:
    """Return the reason of the error in one line, with advice if it is a lock timeout."""
    if isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
        return (
            "it waited too long for a lock of another transaction; the oldest `xact_start` in"
            " pg_stat_activity shows which"
        )
    if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
        return "a statement took too long and was cancelled"
    text = str(error).strip()
    if isinstance(error, DatabaseError):  # the other lines show the statement
        text = text.partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
