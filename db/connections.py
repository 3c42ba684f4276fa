"""The engine's own database connection beside Django's default one.

A drain claims and settles on `ENGINE`, handlers run on the default connection. So nothing that a
handler leaves on its connection (a transaction, a lock, a session setting) reaches the engine, and
the engine's session has limits that a handler's must not have. `tailrace.db.query` and
`tailrace.db.prepared` use the current connection: the default one, except within `engine()`.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TypeVar

import psycopg
from django.db import (
    DEFAULT_DB_ALIAS,
    InterfaceError,
    OperationalError,
    connections,
    transaction,
)
from django.db.backends.base.base import BaseDatabaseWrapper

from tailrace.db.engine_database import SESSION

T = TypeVar("T")

ENGINE = "tailrace"
"""Alias of the connection; the server and the database are those of `default`."""

_alias: ContextVar[str] = ContextVar("database", default=DEFAULT_DB_ALIAS)


def current() -> BaseDatabaseWrapper:
    """Return the connection that statements use here."""
    return connections[_alias.get()]


@contextmanager
def engine() -> Iterator[None]:
    """Use the engine's connection within the block."""
    token = _alias.set(ENGINE)
    try:
        yield
    finally:
        _alias.reset(token)


@contextmanager
def default() -> Iterator[None]:
    """Use the default connection within the block: code that is not the engine's runs there."""
    token = _alias.set(DEFAULT_DB_ALIAS)
    try:
        yield
    finally:
        _alias.reset(token)


def check_at_next_use() -> None:
    """Let Django prove each connection of this thread alive before its next use, and close those
    that are known to be broken."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


def with_reconnect(call: Callable[[], T]) -> T:
    """Return the result of `call`; call it once more, on a new connection, if the connection turns
    out to be dead.

    A restart or a failover of PostgreSQL closes all connections at once, and the next statement of
    each process fails. `call` must be harmless to repeat. Within a transaction it is called once.
    """
    connection = current()
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


def atomic(savepoint: bool = True) -> AbstractContextManager[None]:
    """Return a transaction, or a savepoint in the one that is open, on the current connection."""
    return transaction.atomic(using=_alias.get(), savepoint=savepoint)


_PREFIX = "".join(f"SET LOCAL {name} = '{value}';" for name, value in SESSION.items())


def prefix() -> str:
    """Return what goes before a statement on the current connection: settings, or nothing.

    One message with several statements is one transaction, so a pooler sends it to one server.
    """
    connection = current()
    return _PREFIX if connection.settings_dict.get("POOLED") else ""


def timed_out(error: BaseException) -> bool:
    """Whether a database error is of a statement that took too long, or waited too long for a
    lock. The connection is sound."""
    return isinstance(
        error.__cause__, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable
    )
