"""The limits of a queue, which depend on other claims: how many jobs run at once, or start per
second. Such claims, and claims of ordered queues, hold the claim lock of the queue."""

import sys
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import structlog
from django.db import OperationalError
from psycopg.errors import LockNotAvailable

from tailrace.db import clock, connections
from tailrace.db.query import execute, several
from tailrace.jobs.engine.claiming.claim_sql import RUNNING, TOKENS
from tailrace.jobs.engine.waking.activity import SLICE, newest, same
from tailrace.jobs.handler import Handler

Jobs = TypeVar("Jobs", bound=Sized)

log = structlog.get_logger(__name__)

LOCK_SECONDS = 2
"""A claim waits at most this long for other claims of its queue."""
STOPPED_SECONDS = 30
"""If a process is stopped in the middle of a claim, the database ends its session after this, and
with it the lock for which other claims of the queue wait."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a queue at the beginning of a drain. None: no limit."""

    max_running: int | None = None
    rate_limit: float | None = None


def in_turn(
    handler: Handler, limits: Limits, count: int, claim: Callable[[int], Jobs]
) -> Jobs | None:
    """Call `claim` under the claim lock, with the number of jobs that the limits allow, and return
    the claimed jobs; None if the limits allow no job, or another claim holds the lock for long."""
    try:
        with claim_lock(handler, limits) as allowed:
            jobs = claim(min(count, allowed)) if allowed > 0 else None
            if jobs and limits.rate_limit is not None:
                execute(_TAKE_TOKENS, count=len(jobs), name=handler.name)
            return jobs
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        # While jobs are due, the tick wakes the queue again.
        hint = "a process is stopped or hangs in a claim: see the advisory locks in pg_locks"
        log.warning("claim.locked", queue=handler.name, seconds=LOCK_SECONDS, hint=hint)
        return None


_LOCK = """
SELECT set_config('lock_timeout', %(wait)s, true),
       set_config('idle_in_transaction_session_timeout', %(stopped)s, true),
       pg_advisory_xact_lock(hashtext('tailrace.jobs.claim'), hashtext(%(name)s))::text
"""
_COUNT = f"SELECT count(*) FROM tailrace_jobs_live WHERE {RUNNING}"
_REFILL = f"""
WITH bucket AS MATERIALIZED (
  SELECT seen.name, seen.slice
  FROM {newest("%(name)s")} seen JOIN tailrace_jobs_queueactivity a ON {same("a", "seen")}
  FOR NO KEY UPDATE OF a SKIP LOCKED
)
UPDATE tailrace_jobs_queueactivity a SET tokens_at = {clock.NOW}, tokens = {TOKENS}, slice = {SLICE}
FROM bucket WHERE {same("a", "bucket")} RETURNING floor(tokens)::int
"""


@contextmanager
def claim_lock(handler: Handler, limits: Limits) -> Iterator[int]:
    """Hold the claim lock of the queue in a transaction. Yield how many jobs its limits allow: none
    if another transaction has locked the row of the token bucket, which is refilled."""
    most, rate = limits.max_running, limits.rate_limit
    statements = [_LOCK]
    if most is not None:
        statements.append(_COUNT)
    if rate is not None:
        statements.append(_REFILL)
    with connections.atomic():
        # Each statement sees the commit of the last holder of the lock. They are sent together, so
        # that the lock is not held for a round trip per statement.
        wait, stopped = f"{LOCK_SECONDS}s", f"{STOPPED_SECONDS}s"
        _locked, *results = several(
            *statements, name=handler.name, handler=handler.name, rate=rate, wait=wait,
            stopped=stopped,
        )  # fmt: skip
        allowed = sys.maxsize
        if rate is not None:
            tokens = results.pop()
            if not tokens:
                log.info("claim.queue_row_locked", queue=handler.name)
            allowed = tokens[0][0] if tokens else 0
        if most is not None:
            [(running,)] = results.pop()
            allowed = min(allowed, max(most - running, 0))
        yield allowed


_TAKE_TOKENS = f"""
UPDATE tailrace_jobs_queueactivity a SET tokens = a.tokens - %(count)s
FROM {newest("%(name)s")} seen WHERE {same("a", "seen")}
"""
