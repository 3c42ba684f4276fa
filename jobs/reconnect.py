"""reconnect: a statement that meets a connection which PostgreSQL has ended is tried on a new one.

A restart or a failover ends all connections at once, and a process learns of it by its next
statement. Of a drain that would cost the message that called it, and the tick waits longer before
each message that it sends again.
"""

from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connection

T = TypeVar("T")


def on_a_live_connection(call: Callable[[], T]) -> T:
    """Return what `call` returns; called once more if the connection turns out to be dead.

    `call` may be repeated without harm. Within a transaction it is called once.
    """
    if connection.in_atomic_block:
        return call()
    connection.close_if_unusable_or_obsolete()
    try:
        return call()
    except (OperationalError, InterfaceError):
        if connection.in_atomic_block or (connection.connection and connection.is_usable()):
            raise
        connection.close()
        return call()
