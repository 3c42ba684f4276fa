"""Turn the results of what was sent to a destination into outcomes of its jobs.

`DestinationHandler` does so for what it sends.

A job is charged an attempt when its destination answered it with an error or became unavailable
while it was sent. A job that only waited behind others, or was the probe of a half-open breaker, is
charged nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import uniform
from typing import Any

import structlog
from django.db import OperationalError

from tailrace.db import connections
from tailrace.db.query import database_now
from tailrace.jobs.destinations import breaker
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.models import Job
from tailrace.jobs.operations.retry import retry_now

log = structlog.get_logger(__name__)

SHORTEST_WAIT = 1.0
"""Seconds until a job that was not tried, because of others in its batch, is taken again."""
LONGEST_WAIT = 3600.0
"""Seconds that a job of an unavailable destination waits at most before it is claimed again."""
RELEASE_BATCH, RELEASE_BATCHES = 5000, 20
"""Jobs that one statement makes due, and how many statements there are at most."""
JITTER = 1.5
"""A wait is lengthened by up to this factor, so that jobs do not come back all at one moment."""


def breaker_is_open(destination: str) -> str:
    """Return the reason of jobs that wait because of their destination's circuit breaker."""
    return f"the circuit breaker of {destination} is open"


class DeliveryStatus(Enum):
    """How sending a message ended."""

    SENT = "sent"
    FAILED = "failed"
    """The destination answered with an error; a later try may succeed."""
    DEFERRED = "deferred"
    """The destination works, and may take this message later."""
    REJECTED = "rejected"
    """The destination will never take this message."""
    UNAVAILABLE = "unavailable"
    """The destination cannot be reached or used, by this message or any other."""
    NOT_TRIED = "not tried"
    """Others failed before it, or took too long; it may go at once when the destination is back."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The status of one message, and why; `after` in seconds if the destination named a wait."""

    status: DeliveryStatus
    reason: str = ""
    after: float | None = None
    result: Any = None
    """Of a message that was sent: what its job records."""
    charged: bool = True
    """Whether a message to an unavailable destination costs its job an attempt."""


SENT = DeliveryResult(DeliveryStatus.SENT)
NOT_TRIED = DeliveryResult(DeliveryStatus.NOT_TRIED)


def apply_results(
    name: str,
    state: breaker.BreakerState,
    jobs: Sequence[ClaimedJob],
    results: Sequence[DeliveryResult],
    *,
    elsewhere: bool = False,
) -> bool:
    """Update the destination's breaker `name` and set the outcome of each job; return whether the
    destination was away and is back.

    `elsewhere`: their messages may go to other destinations, so they need not wait for this one.
    """
    wait = update_breaker(name, state, results)
    for job, result in zip(jobs, results, strict=True):
        _set_outcome(job, result, state, 0.0 if elsewhere else wait)
    tried = any(result.status is not DeliveryStatus.NOT_TRIED for result in results)
    return state.probe and tried and not wait


def _set_outcome(
    job: ClaimedJob, result: DeliveryResult, state: breaker.BreakerState, wait: float
) -> None:
    match result.status:
        case DeliveryStatus.SENT:
            job.complete(result.result)
        case DeliveryStatus.REJECTED:
            job.fail(result.reason)
        case DeliveryStatus.FAILED | DeliveryStatus.DEFERRED:
            job.retry(result.reason, after=result.after)
        case DeliveryStatus.UNAVAILABLE if result.charged and not state.probe:
            job.retry(result.reason, after=with_jitter(wait))
        case DeliveryStatus.UNAVAILABLE:
            postpone([job], result.reason, wait)
        case DeliveryStatus.NOT_TRIED:
            postpone([job], result.reason or "others failed before it", wait)


def update_breaker(
    name: str, state: breaker.BreakerState, results: Sequence[DeliveryResult]
) -> float:
    """Update the destination's breaker; return for how many seconds it is open now. One whose row
    somebody holds stays as it is."""
    try:
        return _updated(name, state, results)
    except OperationalError as error:
        if not connections.timed_out(error):
            raise
        log.warning("breaker.row_locked", breaker=name)
        return 0.0


def _updated(name: str, state: breaker.BreakerState, results: Sequence[DeliveryResult]) -> float:
    unavailable = [result for result in results if result.status is DeliveryStatus.UNAVAILABLE]
    errors = [result for result in results if result.status is DeliveryStatus.FAILED]
    if unavailable:
        reason = unavailable[0].reason
        return breaker.record_failure(name, reason, at_once=True, probe=state.probe)
    if waits := [result.after for result in errors if result.after is not None]:
        breaker.open_for(name, errors[0].reason, max(waits))
        return max(waits)
    tried = [result for result in results if result.status is not DeliveryStatus.NOT_TRIED]
    if not tried:
        return 0.0
    if len(errors) == len(tried):
        reason, count = errors[0].reason, len(errors)
        return breaker.record_failure(name, reason, at_once=False, probe=state.probe, count=count)
    if state.failures or state.probe:
        breaker.record_success(name)
    return 0.0


def postpone(jobs: Iterable[ClaimedJob], reason: str, seconds: float) -> None:
    """Snooze the jobs, longer each time: a long outage costs few claims, however many wait.

    When the destination is back, `release` makes them due at once.
    """
    for job in jobs:
        factor = 2 ** min(job.claim_no - 1, 10) if seconds else 1
        wait = min(max(seconds, SHORTEST_WAIT) * factor, max(seconds, LONGEST_WAIT))
        job.snooze(reason, seconds=with_jitter(wait))


def release(handler: str, lane: str | None, by: str, *, charged: bool = False) -> int:
    """Make due the postponed jobs of the lane (None: of all lanes); return how many.

    Jobs that were charged an attempt keep the wait before their next one, unless `charged`. Those
    that were never claimed are due when they should be.
    """
    waiting = Job.objects.pending().filter(
        handler=handler, due_at__gt=database_now(), claim_no__gt=0
    )
    if lane is not None:
        waiting = waiting.filter(lane=lane)
    if not charged:
        waiting = waiting.filter(attempt=0)
    released = 0
    for _ in range(RELEASE_BATCHES):
        ids = list(waiting.values_list("id", flat=True)[:RELEASE_BATCH])
        changed = retry_now(ids, by=by).changed if ids else []
        released += len(changed)
        if not changed:
            break
    return released


def with_jitter(seconds: float) -> float:
    """Return the wait or somewhat more, different each time."""
    return seconds * uniform(1.0, JITTER)  # noqa: S311
