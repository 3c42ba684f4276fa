"""hot: the cursor for the statements that run for each event and each batch.

The server parses and plans such a statement once per connection, which is half of what a short
one costs. DATABASE_PREPARE=no turns it off, for a pooler that mixes connections' statements.
"""

from django.db import connection
from django.db.backends.postgresql.base import ServerBindingCursor
from django.db.backends.utils import CursorWrapper


def hot_cursor() -> CursorWrapper:
    """Return a cursor of Django's connection whose parameters travel apart from the statement."""
    wrapper = connection.cursor()
    wrapper.cursor = ServerBindingCursor(connection.connection)  # type: ignore[call-arg]
    return wrapper
