"""The engine's own database connection beside Django's default one.

A drain claims and settles on `ENGINE`, handlers run on the default connection. So nothing that a
handler leaves on its connection (a transaction, a lock, a session setting) reaches the engine, and
the engine's session has limits that a handler's must not have. `tailrace.db.query` and
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
"""Alias of the connection; the server and the database are those of `default`."""
STATEMENT_SECONDS = 15
LOCK_SECONDS = 2
SESSION = {
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "lock_timeout": f"{LOCK_SECONDS}s",
    # A plan made while a table was empty is kept when the table has grown. Every statement of the
    # engine is meant to be answered by indexes, so the planner may not choose anything else.
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",  # before PostgreSQL 18 a plan that has to do what is off seems expensive
}
"""Settings of the engine's session."""

_alias: ContextVar[str] = ContextVar("database", default=DEFAULT_DB_ALIAS)


def engine_database(default: Mapping[str, Any], *, pooled: bool) -> dict[str, Any]:
    """Return Django's description of the engine's connection, from that of the default one.

    `pooled`: behind a pooler that mixes transactions a session has no settings of its own; there
    `prefix` sends them with each statement.
    """
    options = default["OPTIONS"] if pooled else with_session(default["OPTIONS"], SESSION)
    return {
        **default,
        "OPTIONS": dict(options),
        "POOLED": pooled,
        "TEST": {"MIRROR": DEFAULT_DB_ALIAS},
    }


def with_session(options: Mapping[str, Any], session: Mapping[str, Any]) -> dict[str, Any]:
    """Return Django's OPTIONS of a database whose sessions begin with these settings, too."""
    flags = " ".join(f"-c {name}={value}" for name, value in session.items())
    return {**options, "options": f"{options.get('options', '')} {flags}".strip()}


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
