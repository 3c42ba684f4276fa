"""Call a handler, with its time limit, on the default connection, which is cleaned afterwards."""

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import structlog

from tailrace.db import connections
from tailrace.db.sessions import session
from tailrace.db.sessions.session_statements import cancel_statements
from tailrace.environment.conf import conf
from tailrace.events import context
from tailrace.jobs.engine.run.failure import verdict_of
from tailrace.jobs.engine.run.verdict import Verdict, completed
from tailrace.jobs.engine.traces import spans
from tailrace.jobs.handler import ClaimedJob, Handler, Interrupted, Permanent, TimeLimitExceeded
from tailrace.jobs.runtime import shutdown


def run_alone(
    job: ClaimedJob, call: Callable[[ClaimedJob], Any], limit: float | None = None
) -> Verdict:
    """Call the handler with this one job and return the verdict, also after an error. `limit`: a
    shorter time limit than the handler's."""
    with job_context(job):
        try:
            with guarded(job.handler, limit), timed([job]):
                check(job)
                result = call(job)
            return completed(job, result)
        except (Exception, TimeLimitExceeded, Interrupted) as error:
            return verdict_of(job, error)


def check(job: ClaimedJob) -> None:
    """Raise Permanent if the job cannot run: its event was deleted, or its payload is invalid."""
    if job.event_id is not None:
        job.require_event()
    _ = job.payload  # validates it


@contextmanager
def timed(jobs: Sequence[ClaimedJob]) -> Iterator[None]:
    """Record on these jobs when the block, a call of their handler, began and how long it took."""
    began = time.monotonic()
    for job in jobs:
        job.call_after, job.call_took = began - job.claimed_at, None
    try:
        with spans.running(jobs):
            yield
    finally:
        seconds = time.monotonic() - began
        for job in jobs:
            job.call_took = seconds


@contextmanager
def guarded(handler: Handler, limit: float | None = None) -> Iterator[None]:
    """Run the block, a call of the handler, with the time limit `limit` or else the handler's own,
    and clean its connections."""
    seconds = limit or handler.time_limit or conf.JOBS_TIME_LIMIT
    with connections.default(), left_clean(handler.name), _time_limit(seconds):
        yield


@contextmanager
def left_clean(who: str) -> Iterator[None]:
    """Check the connections of this thread at the end of the block, and clean or replace them.
    Raises Permanent if the block leaves a transaction open, which is rolled back, so that the work
    of `who` is lost."""
    with session.watched() as watch:
        try:
            yield
        except BaseException:
            watch.restore()
            raise
    if watch.restore():
        raise Permanent(f"{who} left a transaction open; its writes were rolled back")


@contextmanager
def job_context(job: ClaimedJob) -> Iterator[None]:
    """Within the block, log entries have the job and its event, and published events get the event
    as their cause."""
    event = job.event
    cause = context.cause.set(event.id if event else None)
    trace = context.trace_parent.set(event.trace_parent if event else "")
    try:
        with structlog.contextvars.bound_contextvars(
            queue=job.handler.name,
            job_id=job.id,
            claim_no=job.claim_no,
            event_id=job.event_id,
        ):
            yield
    finally:
        context.cause.reset(cause)
        context.trace_parent.reset(trace)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the block, and its running statement, at the time limit or at the end of the grace
    of a shutdown.

    Only the main thread can be interrupted, since only it gets signals. Prefork and solo workers
    run their tasks there. In other threads only Celery's hard time limit applies.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(signum: int, frame: FrameType | None) -> None:
        # Cancel statements here: when the exception leaves an `atomic` block of the call, Django
        # closes the busy connection, and the server would continue the statement.
        cancel_statements()
        if shutdown.seconds_left() <= 0:
            raise Interrupted
        raise TimeLimitExceeded(f"took longer than its time limit of {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, interrupt)
    shutdown.arm(seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
