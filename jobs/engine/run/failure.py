"""The verdict on a job whose handler raised, and the report of a failed attempt."""

import traceback

from tailrace.db import connections
from tailrace.events.errors import UnreadablePayload
from tailrace.jobs.engine.failures.fingerprint import fingerprint, frame_of
from tailrace.jobs.engine.run.verdict import Verdict, handed_back, message_of, storable
from tailrace.jobs.handler import (
    Cancel,
    ClaimedJob,
    Interrupted,
    LeaseLost,
    Outcome,
    Permanent,
    Retry,
    Skip,
    Snooze,
)
from tailrace.jobs.models import Attempt
from tailrace.jobs.runtime.report import Failure, report_failure
from tailrace.jobs.runtime.reported_errors import class_name, reported_exception, reported_message
from tailrace.jobs.runtime.states import State

TRACEBACK_LIMIT = 8192
SHORTEST_SNOOZE = 1.0
"""Minimum seconds of a snooze, so that a handler that always snoozes causes few claims."""
LONGEST_DELAY = 366 * 86_400.0
"""Maximum seconds of a delay. The Retry-After of a destination may be any number."""


def interrupted(job: ClaimedJob) -> Verdict:
    """Return the verdict on a job whose call a shutdown interrupted: it is pending again at once,
    and the attempt is recorded but not counted."""
    verdict = verdict_of(job, Interrupted())
    verdict.suspect_group = job.suspect_group
    return verdict


def verdict_of(job: ClaimedJob, error: BaseException) -> Verdict:
    match error:
        case Skip():
            return Verdict(job, State.SKIPPED, error=message_of(error))
        case Cancel():
            return Verdict(job, State.CANCELLED, error=message_of(error))
        case Snooze():
            delay = max(SHORTEST_SNOOZE, error.seconds)
            verdict = _attempt(job, State.PENDING, error, Attempt.Outcome.SNOOZED, delay)
            verdict.until = error.until
            return verdict
        case LeaseLost():
            return handed_back(job)
        case Interrupted():
            return _attempt(job, State.PENDING, error, Attempt.Outcome.INTERRUPTED)
        case Retry(counted=False):
            cause = error.__cause__ or error
            verdict = _attempt(job, State.PENDING, cause, Attempt.Outcome.RETRIED, error.after or 0)
            verdict.charged = False
            return verdict
    no_more = job.is_last or job.attempt >= job.max_attempts
    if no_more or isinstance(error, Permanent | UnreadablePayload):
        return _attempt(job, State.FAILED, error, Attempt.Outcome.FAILED)
    after = error.after if isinstance(error, Retry) else None
    delay = job.handler.backoff.after(job.attempt) if after is None else after
    return _attempt(job, State.PENDING, error, Attempt.Outcome.RETRIED, delay)


def _attempt(
    job: ClaimedJob,
    state: State,
    error: BaseException,
    outcome: Attempt.Outcome,
    delay: float = 0.0,
) -> Verdict:
    message, error_class = message_of(error) or type(error).__name__, class_name(error)
    is_failure = outcome in (Attempt.Outcome.RETRIED, Attempt.Outcome.FAILED)
    return Verdict(
        job,
        state,
        attempt=outcome,
        delay=min(max(0.0, float(delay)), LONGEST_DELAY),
        charged=outcome not in (Attempt.Outcome.SNOOZED, Attempt.Outcome.INTERRUPTED),
        error=message,
        error_class=error_class,
        traceback="" if isinstance(error, Outcome | Interrupted) else _traceback(error),
        exception=error,
        failure=fingerprint(job.handler.name, error_class, message, frame_of(error))
        if is_failure
        else None,
    )


def _traceback(error: BaseException) -> str:
    """Return the last TRACEBACK_LIMIT characters of the traceback, which contain the cause."""
    text = storable("".join(traceback.format_exception(error)))
    return text if len(text) <= TRACEBACK_LIMIT else "…" + text[-TRACEBACK_LIMIT + 3 :]


def report(verdict: Verdict) -> None:
    """Report the verdict if it is a failure."""
    if failure := failure_of(verdict):
        with connections.default():
            report_failure(failure)


def failure_of(verdict: Verdict) -> Failure | None:
    """Return the Failure to report; None if the verdict is not a failure."""
    if verdict.attempt not in (Attempt.Outcome.RETRIED, Attempt.Outcome.FAILED):
        return None
    job = verdict.job
    return Failure(
        handler=job.handler.name,
        job_id=job.id,
        event_id=job.event_id,
        event_type=job.event.type if job.event else "",
        routing_key=job.routing_key,
        attempt=job.attempt,
        max_attempts=job.max_attempts,
        claim_no=job.claim_no,
        final=verdict.attempt == Attempt.Outcome.FAILED,
        retry_in=verdict.delay,
        error=reported_message(verdict.error_class, verdict.error),
        error_class=verdict.error_class,
        silenced=verdict.silenced,
        is_logged=job.is_logged,
        exception=None if verdict.exception is None else reported_exception(verdict.exception),
    )
