"""Limit how long a statement waits for locks of other transactions, and name the locked rows. A
statement with the CTE LIMITED first in its FROM waits for at most WAIT_SECONDS, or for the caller's
lock_timeout if that is shorter. The CTE `restored` resets the caller's lock_timeout when the CTE
that it is given is done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import structlog
from django.db import OperationalError

from tailrace.db import connections

log = structlog.get_logger(__name__)

T = TypeVar("T")

WAIT_SECONDS = 10.0

LIMITED = """
limited AS MATERIALIZED (
  SELECT own, set_config('lock_timeout',
    CASE WHEN own::interval BETWEEN '1 ms' AND make_interval(secs => %(wait_seconds)s) THEN own
         ELSE round(1000 * %(wait_seconds)s)::text END, true)
  FROM (SELECT current_setting('lock_timeout') AS own) caller
)"""


def restored(after: str) -> str:
    """Return the CTE `restored`, which runs after the CTE `after`. The last SELECT must join it."""
    return f"""
restored AS MATERIALIZED (
  SELECT set_config('lock_timeout', limited.own, true)
  FROM limited, (SELECT count(*) FROM {after}) done
)"""


def params() -> dict[str, Any]:
    """Return the parameters of LIMITED."""
    return {"wait_seconds": WAIT_SECONDS}


class Blocked(OperationalError):
    """Another open transaction holds a lock that a statement needs. Nothing was changed: roll the
    transaction back and try again later."""


_REASONS = {
    "55P03": "another open transaction has locked this for too long",
    "40P01": "another transaction and this one wait for each other (a deadlock)",
}
"""By SQLSTATE (lock_not_available, deadlock_detected)."""


@contextmanager
def named(what: Callable[[], str]) -> Iterator[None]:
    """Raise Blocked instead of a lock timeout or deadlock; `what` returns the rows' description."""
    try:
        yield
    except OperationalError as error:
        reason = _REASONS.get(getattr(error.__cause__, "sqlstate", None) or "")
        if reason is None:
            raise
        raise Blocked(f"{reason}: {what()}; try again later") from error


def in_transaction(work: Callable[[], T], *, one_statement: bool = False) -> T:
    """Call `work` in the caller's transaction, or else in a new one, where it is called a second
    time if it raises Blocked. Return its result. With `one_statement`, no transaction is opened,
    which saves two round trips."""
    connection = connections.current()
    own = not connection.in_atomic_block

    def call() -> T:
        if one_statement and own and connection.get_autocommit():
            return work()
        with connections.atomic(savepoint=False):
            return work()

    try:
        return call()
    except Blocked as error:
        if not own:
            raise
        log.warning("transaction.repeated", error=str(error))
    return call()
