"""Run the statements of each event and each batch, prepared once per connection by the server.

Parsing and planning is half of what a short statement costs. DATABASE_PREPARE=no turns this off,
for a pooler that mixes the statements of connections.
"""

from typing import Any

from django.db.backends.postgresql.base import ServerBindingCursor

from tailrace.db import clock, connections
from tailrace.db import query as unprepared


def query(sql: str, /, **params: Any) -> list[tuple[Any, ...]]:
    """Do what `tailrace.db.query.query` does, with a statement that the server prepares."""
    if connections.prefix():  # several statements in one message cannot be prepared
        return unprepared.query(sql, **params)
    connection = connections.current()
    with connection.cursor() as cursor:
        # Its parameters travel apart from the statement.
        cursor.cursor = ServerBindingCursor(connection.connection)  # type: ignore[call-arg]
        cursor.execute(sql, {"clock": clock.offset} | params)
        return cursor.fetchall()
