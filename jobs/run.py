"""run: call the handler and hear how each job ended, whatever the handler does."""

import json
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import structlog
from django.conf import settings
from django.db import connection
from psycopg.pq import TransactionStatus

from events import context
from events.prepare import clean
from jobs.claimed import ClaimedJob, Completed
from jobs.handler import Handler
from jobs.models import Attempt
from jobs.outcomes import (
    Cancel,
    LeaseLost,
    Outcome,
    Permanent,
    Retry,
    Skip,
    Snooze,
    TimeLimitExceeded,
)
from jobs.states import State

TRACEBACK_LIMIT = 8192
RESULT_LIMIT = 65536
LEAST_SNOOZE = 1.0
"""Seconds; a handler that is never ready must not spin."""
LONGEST_DELAY = 366 * 86_400.0
"""Seconds; a destination's Retry-After may say anything."""


@dataclass(slots=True)
class Verdict:
    """How one claim of a job ends: what settle writes."""

    job: ClaimedJob
    state: State
    attempt: Attempt.Outcome | None = None
    """Set when the claim gets a row among the attempts."""
    delay: float = 0.0
    charged: bool = True
    result: str | None = None
    error: str = ""
    error_class: str = ""
    traceback: str = ""
    exception: BaseException | None = None


def run(handler: Handler, jobs: Sequence[ClaimedJob], until: float) -> Iterator[Verdict]:
    """Run the jobs and yield a verdict on each as soon as it is known.

    `until` is a time of `time.monotonic()`: jobs of a handler that takes them one by one which
    have not begun by then are handed back, so that no queue holds a worker for long.
    """
    if handler.in_batches():
        yield from _run_together(handler, jobs, until)
        return
    yield from _one_by_one(jobs, until, lambda job: _run_one(handler, job))


def _run_one(handler: Handler, job: ClaimedJob) -> Verdict:
    with _circumstances(job):
        return _call(handler, job, lambda: Completed(_handle(handler, job)))


def _handle(handler: Handler, job: ClaimedJob) -> Any:
    _ = job.payload
    return handler.handle(job)


def _run_together(handler: Handler, jobs: Sequence[ClaimedJob], until: float) -> Iterator[Verdict]:
    sound = []
    for job in jobs:
        if (broken := _unreadable(handler, job)) is not None:
            yield broken
        else:
            sound.append(job)
    if not sound:
        return
    if len(sound) == 1:
        yield _run_batch_of_one(handler, sound[0])
        return
    failure: BaseException | None = None
    try:
        with structlog.contextvars.bound_contextvars(queue=handler.name), _time_limit(handler):
            handler.handle_batch(sound)
        _check_transaction(sound[0])
    except (Exception, TimeLimitExceeded) as error:
        failure = error
    if failure is None:
        for job in sound:
            yield _as_said(handler, job)
        return
    # One poison job must not fail the others: each is tried alone, and answers for itself.
    _repair_connection()
    yield from _one_by_one(sound, until, lambda job: _run_batch_of_one(handler, job))


def _one_by_one(
    jobs: Sequence[ClaimedJob], until: float, run_one: Callable[[ClaimedJob], Verdict]
) -> Iterator[Verdict]:
    """Run them in turn; what has not begun when the time is up is handed back."""
    for place, job in enumerate(jobs):
        if place and time.monotonic() >= until:
            yield Verdict(job, State.PENDING, charged=False)
        else:
            yield run_one(job)


def _run_batch_of_one(handler: Handler, job: ClaimedJob) -> Verdict:
    def call() -> Completed:
        job.outcome = None
        handler.handle_batch([job])
        return _said(job)

    with _circumstances(job):
        return _call(handler, job, call)


def _unreadable(handler: Handler, job: ClaimedJob) -> Verdict | None:
    try:
        _ = job.payload
    except Permanent as error:
        return _verdict(handler, job, error)
    return None


def _as_said(handler: Handler, job: ClaimedJob) -> Verdict:
    """The verdict on a job of a batch that went through."""
    if job.outcome is None:
        return Verdict(job, State.COMPLETED)
    try:
        return Verdict(job, State.COMPLETED, result=_result(_said(job).result))
    except Outcome as error:
        return _verdict(handler, job, error)


def _said(job: ClaimedJob) -> Completed:
    if isinstance(job.outcome, Outcome):
        raise job.outcome
    return job.outcome or Completed()


def _call(handler: Handler, job: ClaimedJob, call: Callable[[], Completed]) -> Verdict:
    try:
        with _time_limit(handler):
            completed = call()
        _check_transaction(job)
        return Verdict(job, State.COMPLETED, result=_result(completed.result))
    except (Exception, TimeLimitExceeded) as error:
        _repair_connection()
        return _verdict(handler, job, error)


def _result(value: Any) -> str | None:
    """Return the recorded result as JSON text; what is not JSON breaks the handler's contract."""
    if value is None:
        return None
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Permanent(
            f"the handler returned a {type(value).__name__} that is not JSON: {error}"
        ) from None
    if len(text) > RESULT_LIMIT:
        raise Permanent(f"the handler returned {len(text)} bytes; a result has {RESULT_LIMIT}")
    if "\\u" in text and clean(json.loads(text))[1]:
        raise Permanent("the handler returned a NUL character or half a surrogate pair")
    return text


def _verdict(handler: Handler, job: ClaimedJob, error: BaseException) -> Verdict:
    match error:
        case Skip():
            return Verdict(job, State.SKIPPED, error=_message(error))
        case Cancel():
            return Verdict(job, State.CANCELLED, error=_message(error))
        case Snooze():
            return _failure(
                job, State.PENDING, error, Attempt.Outcome.SNOOZED, max(LEAST_SNOOZE, error.seconds)
            )
        case Permanent():
            return _failure(job, State.FAILED, error, Attempt.Outcome.FAILED)
        case LeaseLost():
            return Verdict(job, State.PENDING, charged=False)
    if job.attempt >= handler.max_attempts:
        return _failure(job, State.FAILED, error, Attempt.Outcome.FAILED)
    after = error.after if isinstance(error, Retry) else None
    delay = handler.backoff.after(job.attempt) if after is None else after
    return _failure(job, State.PENDING, error, Attempt.Outcome.RETRIED, delay)


def _failure(
    job: ClaimedJob,
    state: State,
    error: BaseException,
    outcome: Attempt.Outcome,
    delay: float = 0.0,
) -> Verdict:
    return Verdict(
        job,
        state,
        attempt=outcome,
        delay=min(max(0.0, float(delay)), LONGEST_DELAY),
        charged=outcome != Attempt.Outcome.SNOOZED,
        error=_message(error) or type(error).__name__,
        error_class=f"{type(error).__module__}.{type(error).__qualname__}",
        traceback="" if isinstance(error, Outcome) else _traceback(error),
        exception=error,
    )


def _message(error: BaseException) -> str:
    try:
        return _storable(str(error))[:2000]
    except Exception:  # an exception whose __str__ raises must not take its batch along
        return type(error).__name__


def _traceback(error: BaseException) -> str:
    """Return the end of the traceback, where the cause stands, in at most 8 KB."""
    text = _storable("".join(traceback.format_exception(error)))
    return text if len(text) <= TRACEBACK_LIMIT else "…" + text[-TRACEBACK_LIMIT + 3 :]


def _storable(text: str) -> str:
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


@contextmanager
def _circumstances(job: ClaimedJob) -> Iterator[None]:
    """Let logs, and events that the handler publishes, say which job and event they come from."""
    event = job.event
    cause = context.cause.set(event.id if event else None)
    trace = context.trace_parent.set(event.trace_parent if event else "")
    try:
        with structlog.contextvars.bound_contextvars(
            queue=job.handler.name,
            job_id=job.id,
            claim_no=job.claim_no,
            event_id=event.id if event else None,
        ):
            yield
    finally:
        context.cause.reset(cause)
        context.trace_parent.reset(trace)


@contextmanager
def _time_limit(handler: Handler) -> Iterator[None]:
    """Interrupt a call that takes too long. Signals reach the main thread alone, where prefork
    and solo workers run their tasks; elsewhere Celery's hard limit remains."""
    seconds = handler.time_limit or settings.JOBS_TIME_LIMIT
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise TimeLimitExceeded(f"took longer than its time limit of {seconds:g} s")

    # There is one alarm per process; a call within a call (jobs/meanwhile.py) gives it back.
    previous = signal.signal(signal.SIGALRM, interrupt)
    began, (left, _interval) = time.monotonic(), signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 0.001))


def _check_transaction(job: ClaimedJob) -> None:
    """Refuse to complete what a handler did in a transaction that it left open: it is rolled back,
    and settling inside of it would be, too."""
    if connection.connection is None or connection.in_atomic_block:
        return
    status = connection.connection.info.transaction_status
    if status == TransactionStatus.INTRANS or not connection.get_autocommit():
        connection.close()
        raise Permanent(f"{job.handler.name} left a transaction open; what it wrote is rolled back")


def _repair_connection() -> None:
    """Drop a connection that the failure broke, so that settling gets a sound one."""
    if connection.connection is not None and not connection.in_atomic_block:
        connection.close_if_unusable_or_obsolete()
