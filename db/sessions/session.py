"""Check that a handler's code left its database connections unchanged, or replace them. The status
of a connection shows an open transaction. Other changes of the session (settings, advisory locks,
temporary tables, LISTEN, cursors WITH HOLD) are recognised in the text of statements that go
through Django, not of those on psycopg's own connection or within a database function."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from tailrace.db.connections import ENGINE
from tailrace.db.sessions.session_statements import changes_session


class Watch:
    """Watches the connections of this thread, except the engine's, while a handler uses them."""

    def __init__(self) -> None:
        self._connections = [each for each in connections.all() if each.alias != ENGINE]
        self._depths = [_depth(connection) for connection in self._connections]
        self._changed: set[str] = set()

    def __call__(self, execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        if changes_session(sql):
            self._changed.add(context["connection"].alias)
        return execute(sql, params, many, context)

    @contextmanager
    def listening(self) -> Iterator[None]:
        with ExitStack() as stack:
            for connection in self._connections:
                stack.enter_context(connection.execute_wrapper(self))
            yield

    def restore(self) -> bool:
        """Close changed connections, except in a transaction of the caller; return whether a
        transaction or atomic block was left open."""
        left_open = False
        for connection, depth in zip(self._connections, self._depths, strict=True):
            is_open = _depth(connection) != depth or (not depth and _has_transaction(connection))
            left_open = left_open or is_open
            if not depth and (is_open or connection.alias in self._changed or _broken(connection)):
                discard(connection)
            elif not depth and connection.connection and connection.errors_occurred:
                connection.close_if_unusable_or_obsolete()
        return left_open


@contextmanager
def watched() -> Iterator[Watch]:
    watch = Watch()
    with watch.listening():
        yield watch


def discard(connection: BaseDatabaseWrapper) -> None:
    """Close the connection in any state; the next statement opens a new one."""
    # Within an atomic block Django would keep the closed connection until the end of the block.
    connection.in_atomic_block = connection.closed_in_transaction = False
    connection.close()


def _depth(connection: BaseDatabaseWrapper) -> int:
    return len(connection.atomic_blocks) if connection.in_atomic_block else 0


def _has_transaction(connection: BaseDatabaseWrapper) -> bool:
    if connection.connection is None:
        return False
    status = _status(connection)
    in_transaction = status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)
    return in_transaction or not connection.autocommit


def _broken(connection: BaseDatabaseWrapper) -> bool:
    """Whether the server closed the connection, or a statement is still running on it."""
    if connection.connection is None:
        return False
    return _status(connection) in (TransactionStatus.UNKNOWN, TransactionStatus.ACTIVE)


def _status(connection: BaseDatabaseWrapper) -> TransactionStatus:
    return TransactionStatus(connection.connection.info.transaction_status)
