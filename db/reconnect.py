"""Run statements again on a new connection when PostgreSQL has closed the old one.

A restart or a failover closes all connections at once, and the next statement of each process
fails. A drain would lose its message, and the tick sends the next one later each time.
"""

from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError

from tailrace.db import connections

T = TypeVar("T")


def with_reconnect(call: Callable[[], T]) -> T:
    """Return what `call` returns; called once more if the connection turns out to be dead.

    `call` may be repeated without harm. Within a transaction it is called once.
    """
    connection = connections.current()
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
