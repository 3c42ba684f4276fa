"""Wait for a locked row for at most `locks.WAIT_SECONDS`, and name the session that holds it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from django.db.models import Field, Model

from tailrace.db import connections, locks
from tailrace.db.query import query

_LIMIT = f"WITH {locks.LIMITED} SELECT own FROM limited"
_RESTORE = "SELECT set_config('lock_timeout', %(own)s, true)"

_HOLDERS = """
SELECT holder.pid, holder.application_name,
  round(extract(epoch FROM clock_timestamp() - holder.xact_start))::int
FROM {locked} JOIN pg_stat_activity holder ON holder.pid = l.pid
WHERE l.granted AND l.pid <> pg_backend_pid() LIMIT 1
"""
# The first statement does not read the table, for which it would have to wait.
_HOLDER_OF_TABLE = _HOLDERS.format(
    locked="""(SELECT * FROM pg_locks WHERE relation = to_regclass(%(table)s)
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND mode IN ('ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock')) l"""
)
# xmax is the transaction that locked the row last. If several transactions share the lock, xmax is
# no transaction id, and no holder is found.
_HOLDER_OF_ROW = _HOLDERS.format(
    locked="""(SELECT xmax FROM {table} WHERE {column} = %(key)s) r
JOIN pg_locks l ON l.locktype = 'transactionid' AND l.transactionid = r.xmax"""
)


@contextmanager
def bounded(model: type[Model], **key: Any) -> Iterator[None]:
    """Run the block, which changes the row of the model with this key (a column and its value), in
    a transaction, or in a savepoint of the caller's. Raises Blocked, and undoes the block, if it
    waits too long for a lock."""
    with locks.named(lambda: _description(model, *key.items())), connections.atomic():
        [(own,)] = query(_LIMIT, **locks.params())
        yield
        query(_RESTORE, own=own)


def _description(model: type[Model], key: tuple[str, Any]) -> str:
    what = f"the row of {model._meta.verbose_name} {key[1]}"
    for pid, application, seconds in _holder(model, *key):
        name = f" ({application})" if application else ""
        since = "" if seconds is None else f", whose transaction began {seconds} s ago"
        what += f", held by database session {pid}{name}{since}"
    return what


def _holder(model: type[Model], column: str, value: Any) -> list[tuple[Any, ...]]:
    table, field = model._meta.db_table, cast("Field[Any, Any]", model._meta.get_field(column))
    if holder := query(_HOLDER_OF_TABLE, table=table):
        return holder
    statement = _HOLDER_OF_ROW.format(table=table, column=field.column)
    return query(statement, key=field.get_prep_value(value))
