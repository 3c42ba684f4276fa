"""Time limits of statements, so that one that hangs or meets a lock does not block others."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.db import DatabaseError

from tailrace.db import connections
from tailrace.db.query import query


@contextmanager
def time_limits(statement: float, lock: float) -> Iterator[None]:
    """Run the block in a transaction whose statements take, and wait for a lock, at most so many
    seconds; then they raise OperationalError."""
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
    """Run the block, which is in a transaction, with statements that take at most so many seconds,
    or as many as the caller's limit allows; then the caller's limit holds again."""
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
    """Return in one line why it was raised; for a limit above, what to look for."""
    if isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
        return (
            "it waited too long for a lock of another transaction; the oldest `xact_start` in"
            " pg_stat_activity shows which"
        )
    if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
        return "a statement took too long and was cancelled"
    text = str(error).strip()
    if isinstance(error, DatabaseError):  # the other lines are the statement
        text = text.partition("\n")[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
