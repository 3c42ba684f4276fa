"""Prove that foreign code left its database connections as it found them, or replace them.

A transaction that was left open is seen by the connection's status. What a session keeps beside it
(settings, advisory locks, temporary tables, LISTEN, cursors WITH HOLD) is seen in the text of the
statements that go through Django; such a connection is closed, since that leaves nothing.
Statements on psycopg's own connection, or within a function of the database, are not seen.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import TransactionStatus

from tailrace.db.connections import ENGINE
from tailrace.db.session_statements import changes_session


class Watch:
    """The connections of this thread, but the engine's, while foreign code uses them."""

    def __init__(self) -> None:
        self._connections = [own for own in connections.all() if own.alias != ENGINE]
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
        """Replace the connections that are not as they were; return whether a transaction was left
        open, or an atomic block.

        One whose transaction was open before is left alone: it belongs to the caller.
        """
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
    """Watch the statements of the block."""
    watch = Watch()
    with watch.listening():
        yield watch


def discard(connection: BaseDatabaseWrapper) -> None:
    """Close the connection, whatever its state; the next statement opens a new one."""
    # Within an atomic block Django would keep the closed connection for the end of the block.
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
    """Whether the connection is closed by the server, or still within a statement."""
    if connection.connection is None:
        return False
    return _status(connection) in (TransactionStatus.UNKNOWN, TransactionStatus.ACTIVE)


def _status(connection: BaseDatabaseWrapper) -> TransactionStatus:
    return TransactionStatus(connection.connection.info.transaction_status)
