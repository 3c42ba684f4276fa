"""Turn the results of deliveries into outcomes of their jobs.

An attempt is counted if the destination answered with an error, or became unavailable during the
delivery. No attempt is counted for a job that was not sent, or whose message was the probe of a
half-open breaker.
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
"""Seconds until a job is claimed again that was not tried because other deliveries failed."""
LONGEST_WAIT = 3600.0
"""Maximum number of seconds until a job of an unavailable destination is claimed again."""
RELEASE_BATCH, RELEASE_BATCHES = 5000, 20
"""Jobs that one statement makes due, and the maximum number of statements."""
JITTER = 1.5
"""Waits are multiplied by a random factor up to this, so that jobs are not due all at once."""


def breaker_is_open(destination: str) -> str:
    """Return the reason for jobs that wait because the breaker of their destination is open."""
    return f"the circuit breaker of {destination} is open"


class DeliveryStatus(Enum):
    """The outcome of a delivery."""

    SENT = "sent"
    FAILED = "failed"
    """The destination answered with an error; a later attempt may succeed."""
    DEFERRED = "deferred"
    """The destination works, and may accept this message later."""
    REJECTED = "rejected"
    """The destination will never accept this message."""
    UNAVAILABLE = "unavailable"
    """The destination cannot be reached or used, for any message."""
    NOT_TRIED = "not tried"
    """Not sent, because other deliveries failed or took too long. It is sent as soon as the
    destination is available again."""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The status of one delivery and the reason for it. `after`: the seconds to wait that the
    destination requested."""

    status: DeliveryStatus
    reason: str = ""
    after: float | None = None
    result: Any = None
    """The result of the job, if the message was sent."""
    charged: bool = True
    """Whether an attempt is counted if the destination is unavailable."""


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
    """Update the breaker `name` of the destination and set the outcome of each job. Return whether
    it was unavailable and is available again. `elsewhere`: the messages may also go to other
    destinations, so the jobs do not wait for this one."""
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
            postpone([job], result.reason or "not sent: other deliveries failed before it", wait)


def update_breaker(
    name: str, state: breaker.BreakerState, results: Sequence[DeliveryResult]
) -> float:
    """Update the destination's breaker; return the seconds for which it is open now, 0 if it is
    closed. If the row of the breaker is locked for long, it is not updated."""
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
    """Snooze the jobs, for longer each time, so that a long outage causes few claims. `release`
    makes them due when the destination is available again."""
    for job in jobs:
        factor = 2 ** min(job.claim_no - 1, 10) if seconds else 1
        wait = min(max(seconds, SHORTEST_WAIT) * factor, max(seconds, LONGEST_WAIT))
        job.snooze(reason, seconds=with_jitter(wait))


def release(handler: str, lane: str | None, by: str, *, charged: bool = False) -> int:
    """Make the postponed jobs of the lane (None: of all lanes) due; return the number of jobs. Jobs
    that were never claimed keep their due time, and without `charged`, jobs with a counted attempt
    keep their backoff."""
    conditions = {} if lane is None else {"lane": lane}
    waiting = Job.objects.pending().filter(handler=handler, claim_no__gt=0, **conditions)
    waiting = waiting.filter(due_at__gt=database_now())
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
    return seconds * uniform(1.0, JITTER)  # noqa: S311
