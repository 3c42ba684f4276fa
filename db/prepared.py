"""Run statements that the server prepares once per connection: parsing and planning take half the
time of a short statement. DATABASE_PREPARE=no switches this off, for poolers."""

from typing import Any

from django.db.backends.postgresql.base import ServerBindingCursor

from tailrace.db import clock, connections
from tailrace.db import query as unprepared


def query(sql: str, /, **params: Any) -> list[tuple[Any, ...]]:
    """Execute a prepared statement and return its rows, as `tailrace.db.query.query` does."""
    if connections.prefix():  # several statements in one message cannot be prepared
        return unprepared.query(sql, **params)
    connection = connections.current()
    with connection.cursor() as cursor:
        # This cursor sends the parameters separately from the statement.
        cursor.cursor = ServerBindingCursor(connection.connection)  # type: ignore[call-arg]
        cursor.execute(sql, {"clock": clock.offset} | params)
        return cursor.fetchall()
