"""Run statements again on a new connection when PostgreSQL has closed the old one.

A restart or failover of PostgreSQL closes all connections, and the next statement of each process
fails. Without this, a drain would lose its message, and the tick would resend it ever later.
"""

from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError

from tailrace.db import connections

T = TypeVar("T")


def with_reconnect(call: Callable[[], T]) -> T:
    """Return the result of `call`, which is called again if the connection was closed.

    `call` must be safe to repeat. Within a transaction, it is called only once.
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
