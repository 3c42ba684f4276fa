"""Run SQL statements with named parameters on the current connection. The parameter of `clock.NOW`
is added to every statement. A percent sign must be written `%%`."""

from datetime import datetime
from typing import Any

from django.db.backends.postgresql.base import ServerBindingCursor

from tailrace.db import clock, connections


def query(sql: str, /, **params: Any) -> list[tuple[Any, ...]]:
    with connections.current().cursor() as cursor:
        _execute(cursor, sql, params)
        return cursor.fetchall()


def prepared(sql: str, /, **params: Any) -> list[tuple[Any, ...]]:
    """Do the same as `query`, with a statement that the server prepares once per connection:
    parsing and planning take half the time of a short statement. Poolers switch this off."""
    if connections.prefix():  # several statements in one message cannot be prepared
        return query(sql, **params)
    connection = connections.current()
    with connection.cursor() as cursor:
        # This cursor sends the parameters separately from the statement.
        cursor.cursor = ServerBindingCursor(connection.connection)  # type: ignore[call-arg]
        cursor.execute(sql, {"clock": clock.offset} | params)
        return cursor.fetchall() if cursor.description else []


def several(*statements: str, **params: Any) -> list[list[tuple[Any, ...]]]:
    """Execute several statements in one message and return the rows of each."""
    with connections.current().cursor() as cursor:
        cursor.execute(
            connections.prefix() + ";".join(statements), {"clock": clock.offset} | params
        )
        results = [cursor.fetchall()] if cursor.description else []
        while cursor.nextset():
            if cursor.description:  # the SET statements of the prefix return no rows
                results.append(cursor.fetchall())
        return results


def execute(sql: str, /, **params: Any) -> int:
    """Execute a statement and return the number of rows that it changed."""
    with connections.current().cursor() as cursor:
        _execute(cursor, sql, params)
        return int(cursor.rowcount)


def database_now() -> datetime:
    """Return the time of the database, aware and in UTC, for decisions about due or expired rows.
    It takes one round trip; within a statement, use `clock.NOW`."""
    now: datetime
    [(now,)] = query(f"SELECT {clock.NOW}")
    return now


def _execute(cursor: Any, sql: str, params: dict[str, Any]) -> None:
    before = connections.prefix()
    cursor.execute(before + sql, {"clock": clock.offset} | params)
    if before:
        while cursor.nextset():  # to the result of the last statement
            pass
