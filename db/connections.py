"""The engine's own database connection, besides Django's default connection.

A drain claims and settles jobs on the connection `ENGINE`; handlers use the default connection. So
nothing that a handler leaves behind (a transaction, a lock, a session setting) affects the engine,
and the engine's session can have limits that handlers must not have. `tailrace.db.query` and
`tailrace.db.prepared` use the current connection: the default one, except within `engine()`.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

ENGINE = "tailrace"
"""Alias of the connection. It uses the same server and database as `default`."""
STATEMENT_SECONDS = 15
LOCK_SECONDS = 2
SESSION = {
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "lock_timeout": f"{LOCK_SECONDS}s",
    # A plan that was made while a table was empty stays in use when the table has grown. All
    # statements of the engine are meant to use indexes, so other plans are switched off.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",  # before PostgreSQL 18, a plan with a switched-off step counts as expensive
}
"""Settings of the engine's session."""

_alias: ContextVar[str] = ContextVar("database", default=DEFAULT_DB_ALIAS)


def engine_database(default: Mapping[str, Any], *, pooled: bool) -> dict[str, Any]:
    """Return the entry of Django's DATABASES for the engine, made from the entry `default`.

    `pooled`: whether a pooler shares sessions between transactions. Then the session has no
    settings of its own, and `prefix` sends them with each statement.
    """
    options = default["OPTIONS"] if pooled else with_session(default["OPTIONS"], SESSION)
    return {
        **default,
        "OPTIONS": dict(options),
        "POOLED": pooled,
        "TEST": {"MIRROR": DEFAULT_DB_ALIAS},
    }


def with_session(options: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, Any]:
    """Return Django's OPTIONS with these session settings added."""
    flags = " ".join(f"-c {name}={value}" for name, value in session.items())
    return {**options, "options": f"{options.get('options', '')} {flags}".strip()}


def current() -> BaseDatabaseWrapper:
    """Return the current connection: the engine's within `engine()`, else the default one."""
    return connections[_alias.get()]


@contextmanager
def engine() -> Iterator[None]:
    """Make the engine's connection the current one within the block."""
    token = _alias.set(ENGINE)
    try:
        yield
    finally:
        _alias.reset(token)


@contextmanager
def default() -> Iterator[None]:
    """Make the default connection the current one within the block, for handlers' code."""
    token = _alias.set(DEFAULT_DB_ALIAS)
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


def atomic(savepoint: bool = True) -> AbstractContextManager[None]:
    """Return a context manager: a transaction on the current connection, or a savepoint if a
    transaction is open."""
    return transaction.atomic(using=_alias.get(), savepoint=savepoint)


_PREFIX = "".join(f"SET LOCAL {name} = '{value}';" for name, value in SESSION.items())


def prefix() -> str:
    """Return the SET statements to put before a statement on the current connection, or "".

    Several statements in one message are one transaction, so a pooler sends them to one session.
    """
    connection = current()
    return _PREFIX if connection.settings_dict.get("POOLED") else ""


def timed_out(error: BaseException) -> bool:
    """Whether the error says that a statement took too long or waited too long for a lock. The
    connection can still be used."""
    return isinstance(
        error.__cause__, psycopg.errors.QueryCanceled | psycopg.errors.LockNotAvailable
    )
