"""The statements that a session executes: which of them change it, and how to cancel them."""

import re
import select
import time
from typing import Any

import psycopg
import structlog
from django.db import connections
from psycopg.pq import ExecStatus, TransactionStatus

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


def cancel_statements() -> None:
    """Cancel the statements that this thread waits for, on any connection. For a signal handler
    that interrupts the thread. When this returns, each is rolled back, or its connection is
    closed."""
    for connection in connections.all(initialized_only=True):
        raw = connection.connection
        if raw is None or raw.info.transaction_status != TransactionStatus.ACTIVE:
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
