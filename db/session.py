"""Check that a handler's code left its database connections unchanged, or replace them.

The status of a connection shows a transaction that was left open. Other changes of the session
(settings, advisory locks, temporary tables, LISTEN, cursors WITH HOLD) are recognised in the text
of statements that go through Django; then the connection is closed, which ends its session.
Statements on psycopg's own connection, or within a database function, are not recognised.
"""

import re
import select
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
import structlog
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.pq import ExecStatus, TransactionStatus

from tailrace.db.connections import ENGINE

log = structlog.get_logger(__name__)

CANCEL_SECONDS = 5.0
"""How long to wait for the end of a cancelled statement."""

_SPACE = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
_COMMAND = rf"{_SPACE}(?:SET(?!\s+(?:LOCAL|TRANSACTION|CONSTRAINTS)\b)|LISTEN|PREPARE|LOAD)\b"
_FIRST_COMMAND = re.compile(_COMMAND, re.IGNORECASE | re.DOTALL)
_LATER_COMMAND = re.compile(";" + _COMMAND, re.IGNORECASE | re.DOTALL)
_KEYWORDS = ("advisory_lock", "temp", "hold")
"""A quick first check; the expression below decides."""
_SESSION_OBJECT = re.compile(
    r"""\bpg_(?:try_)?advisory_lock | \bpg_temp\b | \bWITH\s+HOLD\b
    | \bTEMP(?:ORARY)?\s+(?:TABLE|VIEW|SEQUENCE|RECURSIVE)\b | \bINTO\s+TEMP(?:ORARY)?\b""",
    re.IGNORECASE | re.VERBOSE,
)
_SET_CONFIG = re.compile(r"\bset_config\b(?:\s*\()?", re.IGNORECASE)
_TOKEN = re.compile(r"'(?:[^']|'')*'|[(),]|[^'(),]+|'")


def changes_session(sql: Any) -> bool:
    """Whether a statement changes the session beyond the end of its transaction."""
    text = sql if isinstance(sql, str) else _text(sql)
    if _FIRST_COMMAND.match(text) or (";" in text and _LATER_COMMAND.search(text)):
        return True
    lower = text.lower()
    if any(keyword in lower for keyword in _KEYWORDS) and _SESSION_OBJECT.search(text):
        return True
    return not all(_is_local(text, call) for call in _SET_CONFIG.finditer(text))


def _is_local(text: str, call: re.Match[str]) -> bool:
    """Whether a call of set_config only lasts until the end of the transaction: its third argument
    is the word `true`."""
    depth, last = 1, ""
    for token in _TOKEN.finditer(text, call.end()):
        if token[0] == ")":
            depth -= 1
        if not depth:
            return call[0].endswith("(") and last.strip().lower() == "true"
        if token[0] == "(":
            depth += 1
        last = "" if token[0] == "," and depth == 1 else last + token[0]
    return False


def _text(sql: Any) -> str:
    if isinstance(sql, psycopg.sql.Composable):
        return sql.as_string()
    return bytes(sql).decode(errors="replace")


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
        """Close changed connections; return whether a transaction or atomic block was left open.

        A connection whose transaction was open before belongs to the caller and is not closed.
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
    """Watch the statements in the block."""
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


def cancel_statements() -> None:
    """Cancel the statements that this thread waits for, on any connection, and wait for their end.

    For a signal handler that interrupts the thread. When this returns, each cancelled statement is
    rolled back, or its connection is closed.
    """
    for connection in connections.all(initialized_only=True):
        raw = connection.connection
        if raw is None or _status(connection) != TransactionStatus.ACTIVE:
            continue
        try:
            raw.cancel_safe(timeout=CANCEL_SECONDS)
            ended = _read_to_end(raw.pgconn, time.monotonic() + CANCEL_SECONDS)
        except psycopg.Error as error:
            log.warning("session.not_cancelled", database=connection.alias, error=str(error))
            ended = False
        if not ended:
            raw.close()


def _read_to_end(pgconn: Any, deadline: float) -> bool:
    """Read the results of the statement; return whether it ended before the deadline."""
    while True:
        while pgconn.is_busy():
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return False
            select.select([pgconn.socket], [], [], remaining)
            pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            return True
        if result.status in (ExecStatus.COPY_IN, ExecStatus.COPY_OUT, ExecStatus.COPY_BOTH):
            return False  # a COPY only ends when its connection is closed
