"""Run a statement on the current connection and return its rows, or their number.

Parameters are named. `clock.NOW` can be used in any statement: its parameter is added here. As
parameters are always sent, a percent sign in a statement is written `%%`.
"""

from datetime import datetime
from typing import Any

from tailrace.db import clock, connections


def query(sql: str, /, **params: Any) -> list[tuple[Any, ...]]:
    """Execute a statement that returns rows, and return them."""
    with connections.current().cursor() as cursor:
        _execute(cursor, sql, params)
        return cursor.fetchall()


def several(*statements: str, **params: Any) -> list[list[tuple[Any, ...]]]:
    """Execute statements that return rows, in one message; return the rows of each."""
    with connections.current().cursor() as cursor:
        cursor.execute(
            connections.prefix() + ";".join(statements), {"clock": clock.offset} | params
        )
        results = [cursor.fetchall()] if cursor.description else []
        while cursor.nextset():
            if cursor.description:  # a setting of the prefix returns no rows
                results.append(cursor.fetchall())
        return results


def execute(sql: str, /, **params: Any) -> int:
    """Execute a statement and return the number of rows that it changed."""
    with connections.current().cursor() as cursor:
        _execute(cursor, sql, params)
        return int(cursor.rowcount)


def database_now() -> datetime:
    """Return the time of the database, aware and in UTC: to decide what is due, late or expired.

    One round trip. Within one statement, use `clock.NOW` instead.
    """
    now: datetime
    [(now,)] = query(f"SELECT {clock.NOW}")
    return now


def _execute(cursor: Any, sql: str, params: dict[str, Any]) -> None:
    before = connections.prefix()
    cursor.execute(before + sql, {"clock": clock.offset} | params)
    if before:
        while cursor.nextset():  # to the result of the last statement
            pass
