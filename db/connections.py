"""The engine's own database connection, `ENGINE`, besides Django's default connection, which
handlers use. So nothing that a handler leaves behind (a transaction, a lock, a session setting)
affects the engine, and its session can have other limits. `tailrace.db.query` uses the
current connection: the default one, except within `engine()`."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import partial, update_wrapper
from typing import Any, TypeVar

import psycopg
from django.db import InterfaceError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from tailrace.db.engine_database import ENGINE as ENGINE
from tailrace.db.engine_database import SESSION, home

T = TypeVar("T")

is_one: ContextVar[bool] = ContextVar("is_one", default=False)
"""Whether the engine uses this thread's default connection: in tests, whose transaction no other
connection sees (`tailrace.jobs.testing`)."""
_alias: ContextVar[str] = ContextVar("database", default="")


def current() -> BaseDatabaseWrapper:
    """Return the current connection: the engine's within `engine()`, else the default one."""
    return connections[_alias.get() or home()]


@contextmanager
def engine() -> Iterator[None]:
    """Make the engine's connection the current one within the block."""
    token = _alias.set(ENGINE)
    try:
        yield
    finally:
        _alias.reset(token)


def engine_if(wanted: bool) -> AbstractContextManager[None]:
    """Return `engine()`, or a context manager that keeps the current connection."""
    return engine() if wanted else nullcontext()


@contextmanager
def default() -> Iterator[None]:
    """Make the default connection the current one within the block, for handlers' code."""
    token = _alias.set(home())
    try:
        yield
    finally:
        _alias.reset(token)


def check_at_next_use() -> None:
    """Close this thread's broken connections, and let Django check the others before their next
    use."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()


def with_reconnect(call: Callable[[], T]) -> T:
    """Return the result of `call`. If the connection was closed, as a restart or failover of
    PostgreSQL does, `call` is called again, so that a drain does not lose its message. `call` must
    be safe to repeat. Within a transaction, it is called only once."""
    connection = current()
    if connection.in_atomic_block:
        return call()
    connection.close_if_unusable_or_obsolete()
    connection.health_check_done = True  # type: ignore[attr-defined]
    try:
        return call()
    except (OperationalError, InterfaceError):
        if connection.in_atomic_block or (connection.connection and connection.is_usable()):
            raise
        connection.close()
        return call()


def atomic(savepoint: bool = True) -> AbstractContextManager[None]:
    """Return a context manager: a transaction on the current connection, or a savepoint if a
    transaction is open."""
    return transaction.atomic(using=_alias.get() or home(), savepoint=savepoint)


def on_commit(call: Callable[..., Any], *args: Any) -> None:
    """Call this after the commit of the current connection's transaction, or at once if there is
    none. An error is logged and not raised."""
    named = update_wrapper(partial(call, *args), call)  # Django's log names it
    current().on_commit(named, robust=True)


_PREFIX = "".join(f"SET LOCAL {name} = '{value}';" for name, value in SESSION.items())


def prefix() -> str:
    """Return the SET statements to put before a statement on the current connection, or "". A
    pooler sends all statements of one message to one session."""
    return _PREFIX if current().settings_dict.get("POOLED") else ""


def timed_out(error: BaseException) -> bool:
    """Whether the error says that a statement took too long or waited too long for a lock. The
    connection can still be used."""
    return isinstance(
        error.__cause__, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable
    )
