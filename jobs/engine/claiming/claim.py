"""Claim a batch of due jobs; the claim is committed before any work starts."""

import json
import os
import socket
import time
import uuid
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from tailrace.db.query import prepared
from tailrace.jobs.engine.claiming import bookmarks, kinds
from tailrace.jobs.engine.claiming.limits import Limits as Limits
from tailrace.jobs.engine.claiming.limits import in_turn
from tailrace.jobs.engine.traces import spans
from tailrace.jobs.handler import ClaimedJob, Handler

WALKS = 5
"""A claim that finds no job continues along the lanes, for up to this many walks in all: see
fair.sql."""


class Batch(list[ClaimedJob]):
    """The jobs of one claim, in order."""

    awake = False
    """Whether the queue was awake at the claim: a message was sent for the jobs that are left."""
    stopped_at: str | None = None
    """The lane at which the walk along the lanes stopped early; None if it did not."""


START = uuid.uuid4().hex[:6]
"""Of this process and its children: two containers may have the same host name and process ids."""


def process_name(pid: int, start: str = START) -> str:
    """Return the beginning of the names of all claims of a process of this host: by default this
    process or a child, otherwise a process with this START."""
    return f"{socket.gethostname()}:{pid}:{start}"


def worker_name() -> str:
    """Return a name that is unique to one claim of this process."""
    return process_name(os.getpid()) + uuid.uuid4().hex[:8]


def claim(
    handler: Handler,
    limits: Limits,
    count: int,
    in_use: Mapping[str, int] | None = None,
    *,
    at_once: bool = True,
) -> Batch:
    """Claim up to `count` due jobs and return them in order; none if the queue is paused or at a
    limit. Locked rows are passed over. `in_use`, for a fair handler whose lanes are destinations:
    the number of calls in flight by lane. `at_once`, for an async handler: all claimed jobs begin
    at once."""
    began = spans.now()
    for _ in range(WALKS):
        jobs = _claim_within(handler, limits, count, in_use, at_once)
        if jobs or jobs.stopped_at is None:
            break
    spans.claimed(jobs, began)
    return jobs


def begin_and_claim(handler: Handler, count: int) -> Batch:
    """Begin a drain and claim up to `count` due jobs of a handler without lanes, in one statement.
    It returns no jobs if the queue is paused, has limits or has no due job: use `begin` then.

    The statement does not see jobs that are committed while it runs, and for which no message is
    sent: the drain has to claim again soon.
    """
    if bookmarks.of_queue[handler.name].ages() is not None:
        return Batch()
    began = spans.now()
    jobs = _claim_without_lanes(handler, _params(handler, count), kinds.BEGIN_PLAIN)
    spans.claimed(jobs, began)
    return jobs


def _claim_within(
    handler: Handler, limits: Limits, count: int, in_use: Mapping[str, int] | None, at_once: bool
) -> Batch:
    if not (handler.ordered or limits.max_running or limits.rate_limit):
        return _claim(handler, count, in_use, at_once)
    jobs = in_turn(handler, limits, count, lambda most: _claim(handler, most, in_use))
    return Batch() if jobs is None else jobs


_last_lanes: dict[str, str] = {}
"""The lane that this process served last, by handler. Fair claims continue after it."""


def _claim(
    handler: Handler, limit: int, in_use: Mapping[str, int] | None, at_once: bool = True
) -> Batch:
    params = _params(handler, limit, at_once)
    if handler.in_lanes():
        return _claim_in_lanes(handler, kinds.in_lanes(handler, in_use), params)
    return _claim_without_lanes(handler, params)


def _params(handler: Handler, limit: int, at_once: bool = True) -> dict[str, Any]:
    return {
        "handler": handler.name,
        "limit": limit,
        "worker": worker_name(),
        "lease": handler.claim_timeout,
        "in_batch": handler.in_batches() or (handler.is_async() and at_once),
    }


def _claim_without_lanes(
    handler: Handler, params: dict[str, Any], full: kinds.Kind = kinds.PLAIN
) -> Batch:
    """Claim due jobs, from the bookmark of this process on if it has one, else by `full`."""
    bookmark = bookmarks.of_queue[handler.name]
    ages, began = bookmark.ages(), time.monotonic()
    kind = full if ages is None else kinds.plain_since(ages)
    rows = prepared(kind.claim, **params, **kind.parameters)
    batch = _batch(handler, params["worker"], rows)
    bookmark.scanned(time.monotonic() - began, full=ages is None)
    if not any(job.isolate for job in batch):  # other jobs are due before an isolated job
        bookmark.claimed(began, None if len(rows) < params["limit"] else rows[-1][:2])
    return batch


def _claim_in_lanes(handler: Handler, kind: kinds.Kind, params: dict[str, Any]) -> Batch:
    """Claim due jobs along the lanes, beginning after the lane that this process served last."""
    last_lane = _last_lanes.get(handler.name, "")
    rows = prepared(kind.claim, last_lane=last_lane, **params, **kind.parameters)
    jobs = [row[1:] for row in rows if row[1] is not None]
    batch = _batch(handler, params["worker"], jobs)
    batch.stopped_at = rows[0][0]
    if batch.stopped_at is not None:
        _last_lanes[handler.name] = batch.stopped_at
    elif batch:
        # A batch by key may have passed over lanes with other keys: the first lane had its turn.
        served = min if handler.in_batches_by_key() else max
        _, lane = served((job.lane <= last_lane, job.lane) for job in batch)
        _last_lanes[handler.name] = lane
    return batch


def _batch(handler: Handler, worker: str, rows: list[tuple[Any, ...]]) -> Batch:
    rows.sort(key=itemgetter(0, 1, 2))
    claimed_at = time.monotonic()
    batch = Batch(_claimed_job(handler, worker, claimed_at, row) for row in rows)
    if rows:
        batch.awake = rows[0][3]
    return batch


def _claimed_job(
    handler: Handler, worker: str, claimed_at: float, row: tuple[Any, ...]
) -> ClaimedJob:
    _priority, overdue, id, _awake, routing_key, payload, lane, attempt, claim_no, *rest = row
    isolate, suspect_group, event_id, *event = rest
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
        event_id=event_id,
        isolate=isolate,
        suspect_group=suspect_group,
        waited=max(-overdue, 0.0),
        claimed_at=claimed_at,
    )
