"""Claim a batch of due jobs; the claim is committed before any work starts."""

import json
import os
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import structlog
from django.db import OperationalError
from psycopg.errors import LockNotAvailable

from db import clock, connections, prepared
from db.arrays import number_array, text_array
from db.query import execute, query
from jobs.engine import pace
from jobs.engine.claim_sql import (
    CLAIM_FAIR,
    CLAIM_FAIR_BY_PLACES,
    CLAIM_ONE_LANE,
    CLAIM_ORDERED,
    CLAIM_PLAIN,
    RUNNING,
    TOKENS,
)
from jobs.handler import ClaimedJob, Handler

log = structlog.get_logger(__name__)

LOCK_SECONDS = 2
"""A claim waits at most this long for the other claims of its queue."""
STOPPED_SECONDS = 30
"""A process that is stopped in the middle of a claim loses its session after this, and with it the
lock that the other claims of the queue wait for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """A queue's limits as they are when a drain begins."""

    max_running: int | None = None
    rate_limit: float | None = None


class Batch(list[ClaimedJob]):
    """The jobs of one claim, in order."""

    awake = False
    """Whether the queue's flag was set at the claim: a message for the rest is on its way."""


def worker_name() -> str:
    """Return a name that no other claim of any process has."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def claim(
    handler: Handler,
    limits: Limits,
    count: int,
    in_use: Mapping[str, int] | None = None,
    *,
    at_once: bool = True,
) -> Batch:
    """Claim up to `count` due jobs, in order; none if the queue is paused or at a limit.

    Passes over jobs whose rows are locked by others, and waits for no row. `in_use`, of a fair
    handler whose lanes have `per_destination` places each: how many of them are taken. `at_once`,
    of an async handler: all of them begin at once.
    """
    if not (handler.ordered or limits.max_running or limits.rate_limit):
        return _claim(handler, count, in_use, at_once)
    try:
        return _claim_in_turn(handler, limits, count, in_use)
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        # While jobs are due, the tick wakes the queue again.
        hint = "a process is stopped or hangs in a claim: see the advisory locks in pg_locks"
        log.warning("claim.locked", queue=handler.name, seconds=LOCK_SECONDS, hint=hint)
        return Batch()


def _claim_in_turn(
    handler: Handler, limits: Limits, count: int, in_use: Mapping[str, int] | None
) -> Batch:
    """Claim where what one claim takes depends on the others."""
    with _claim_lock(handler):
        count = min(_free_places(handler, limits, count), _refill(handler, limits, count))
        jobs = _claim(handler, count, in_use, True) if count > 0 else Batch()
        if jobs and limits.rate_limit is not None:
            execute(_TAKE_TOKENS, count=len(jobs), name=handler.name)
    return jobs


_LOCK = """
SELECT set_config('lock_timeout', %(wait)s, true),
       set_config('idle_in_transaction_session_timeout', %(stopped)s, true),
       pg_advisory_xact_lock(hashtext('jobs.claim'), hashtext(%(name)s))::text
"""


@contextmanager
def _claim_lock(handler: Handler) -> Iterator[None]:
    """Hold the lock of the queue's claims in a transaction."""
    with connections.atomic():
        # A statement of its own: the claim after it must see what the last holder committed.
        wait, stopped = f"{LOCK_SECONDS}s", f"{STOPPED_SECONDS}s"
        prepared.query(_LOCK, name=handler.name, wait=wait, stopped=stopped)
        yield


def _free_places(handler: Handler, limits: Limits, count: int) -> int:
    if limits.max_running is None:
        return count
    [(running,)] = query(f"SELECT count(*) FROM jobs_job WHERE {RUNNING}", handler=handler.name)
    return min(max(limits.max_running - running, 0), count)


_REFILL = f"""
WITH bucket AS MATERIALIZED (
  SELECT name FROM jobs_queue WHERE name = %(name)s FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE jobs_queue q SET tokens_at = {clock.NOW}, tokens = {TOKENS}
FROM bucket WHERE q.name = bucket.name RETURNING floor(tokens)::int
"""


def _refill(handler: Handler, limits: Limits, count: int) -> int:
    """Refill the queue's token bucket (it holds those of one second); return its whole tokens.

    0 while another transaction has the queue's row locked: whoever claimed without taking tokens
    would exceed the limit.
    """
    if limits.rate_limit is None:
        return count
    rows = query(_REFILL, rate=limits.rate_limit, name=handler.name)
    if not rows:
        log.info("claim.queue_row_locked", queue=handler.name)
    return rows[0][0] if rows else 0


_TAKE_TOKENS = "UPDATE jobs_queue SET tokens = tokens - %(count)s WHERE name = %(name)s"

_last_lanes: dict[str, str] = {}
"""Per handler, the lane that this process served last: fair claims continue after it."""


def _claim(handler: Handler, limit: int, in_use: Mapping[str, int] | None, at_once: bool) -> Batch:
    statement = CLAIM_ORDERED if handler.ordered else CLAIM_FAIR if handler.fair else CLAIM_PLAIN
    places: dict[str, Any] = {}
    if handler.in_batches_by_lane():
        statement, places = CLAIM_ONE_LANE, pace.lane_sizes(handler)
    if in_use is not None and statement is CLAIM_FAIR:
        statement = CLAIM_FAIR_BY_PLACES
        lanes, counts = text_array(in_use), number_array(in_use.values())
        places = {"per_lane": handler.per_destination, "lanes": lanes, "counts": counts}
    worker = worker_name()
    last_lane = _last_lanes.get(handler.name, "")
    rows = prepared.query(
        statement,
        handler=handler.name,
        limit=limit,
        worker=worker,
        lease=handler.claim_timeout,
        in_batch=handler.in_batches() or (handler.is_async() and at_once),
        last_lane=last_lane,
        **places,
    )
    rows.sort(key=itemgetter(0, 1, 2))
    batch = Batch(_claimed_job(handler, worker, row[2:]) for row in rows)
    if rows:
        batch.awake = rows[0][3]
        if handler.in_lanes():
            _last_lanes[handler.name] = _last_in_turn([job.lane for job in batch], last_lane)
    return batch


def _last_in_turn(lanes: list[str], start: str) -> str:
    """Return the lane that came last in the round that began after `start`."""
    wrapped = [lane for lane in lanes if lane <= start]
    return max(wrapped or lanes)


def _claimed_job(handler: Handler, worker: str, row: tuple[Any, ...]) -> ClaimedJob:
    """Build a ClaimedJob from a row of the claim's RETURNING."""
    id, _awake, routing_key, payload, lane, attempt, claim_no, isolate, *rest = row
    suspect_group, *event = rest
    return ClaimedJob(
        id=id,
        handler=handler,
        routing_key=routing_key,
        raw_payload=None if payload is None else json.loads(payload),
        lane=lane,
        attempt=attempt,
        claim_no=claim_no,
        worker=worker,
        event_row=None if event[0] is None else event,
        isolate=isolate,
        suspect_group=suspect_group,
    )
