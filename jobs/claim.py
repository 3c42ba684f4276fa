"""claim: win the right to try a batch of due jobs, committed before any work starts."""

import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from django.db import connection, transaction

from events import clock
from jobs.claim_sql import CLAIM_FAIR, CLAIM_ORDERED, CLAIM_PLAIN, RUNNING, TOKENS
from jobs.claimed import ClaimedJob, from_row
from jobs.handler import Handler


@dataclass(frozen=True, slots=True)
class Limits:
    """A queue's limits as they stand when a drain begins."""

    max_running: int | None = None
    rate_limit: float | None = None


class Batch(list[ClaimedJob]):
    """The jobs of one claim, in order."""

    awake = False
    """Whether the queue had been woken when they were claimed: somebody is coming for the rest."""


def worker_name() -> str:
    """Return a name that no other claim of any process bears."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def claim(handler: Handler, limits: Limits, limit: int | None = None) -> Batch:
    """Claim up to a batch of due jobs, in order; empty if the queue is paused or at a limit."""
    wanted = handler.batch_size if limit is None else limit
    with _alone(handler, limits) as alone:
        if alone:
            wanted = min(_room(handler, limits, wanted), _tokens(handler, limits, wanted))
        rows = _execute(handler, wanted) if wanted > 0 else Batch()
        if alone and limits.rate_limit is not None:
            _spend(handler, len(rows))
    return rows


@contextmanager
def _alone(handler: Handler, limits: Limits) -> Iterator[bool]:
    """Serialise the claims of a queue where what one may take depends on what others took."""
    if not (handler.ordered or limits.max_running or limits.rate_limit):
        yield False
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            # A statement of its own: the claim behind it must see what the last holder committed.
            cursor.execute(
                "SELECT pg_advisory_xact_lock(hashtext('jobs.claim'), hashtext(%s))", [handler.name]
            )
        yield True


def _room(handler: Handler, limits: Limits, wanted: int) -> int:
    if limits.max_running is None:
        return wanted
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM jobs_job WHERE {RUNNING}", {"handler": handler.name})
        return min(max(limits.max_running - int(cursor.fetchone()[0]), 0), wanted)


def _tokens(handler: Handler, limits: Limits, wanted: int) -> int:
    """Refill the queue's token bucket (a second's worth deep) and return the whole tokens in it."""
    if limits.rate_limit is None:
        return wanted
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            UPDATE jobs_queue SET tokens_at = {clock.NOW}, tokens = {TOKENS}
            WHERE name = %(name)s RETURNING floor(tokens)::int""",
            clock.params() | {"rate": limits.rate_limit, "name": handler.name},
        )
        row = cursor.fetchone()
    return row[0] if row else 0


def _spend(handler: Handler, count: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_queue SET tokens = tokens - %s WHERE name = %s", [count, handler.name]
        )


_last_lanes: dict[str, str] = {}
"""Per handler, the lane that this process served last: fair claims go on behind it."""


def _execute(handler: Handler, limit: int) -> Batch:
    statement = CLAIM_ORDERED if handler.ordered else CLAIM_FAIR if handler.fair else CLAIM_PLAIN
    worker = worker_name()
    params: dict[str, Any] = {
        "handler": handler.name,
        "limit": limit,
        "worker": worker,
        "lease": handler.claim_timeout,
        "last_lane": _last_lanes.get(handler.name, ""),
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, clock.params() | params)
        rows = cursor.fetchall()
    rows.sort(key=itemgetter(0, 1, 2))
    batch = Batch(from_row(handler, worker, row[2:]) for row in rows)
    if rows:
        batch.awake = rows[0][3]
        if handler.in_lanes():
            lanes = [job.lane for job in batch]
            _last_lanes[handler.name] = _last_in_turn(lanes, params["last_lane"])
    return batch


def _last_in_turn(lanes: list[str], start: str) -> str:
    """Return the lane that came last in the round that began behind `start`."""
    behind = [lane for lane in lanes if lane <= start]
    return max(behind or lanes)
