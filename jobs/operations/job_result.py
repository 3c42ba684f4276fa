"""Wait for the result of a job by polling the database at growing intervals."""

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from tailrace.db import connections
from tailrace.db.query import query
from tailrace.jobs.runtime.states import DONE, FINISHED, State

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Seconds between two queries for a job: each pause is 1.5 times as long as the one before."""


class UnknownJob(LookupError):
    """There is no job with this id: it was never created, is not committed yet, or was pruned."""


class JobFailed(Exception):
    """The job failed or was cancelled. Has the job's `state` and `error`."""

    def __init__(self, job_id: int, handler: str, state: str, error: str) -> None:
        reason = error or "no reason is recorded"
        super().__init__(f"job {job_id} of {handler} is {state}: {reason}")
        self.job_id, self.handler, self.state, self.error = job_id, handler, state, error


class NotFinished(TimeoutError):
    """The job has not finished within the timeout. It continues: call `result` again, or cancel
    the job."""


class ResultNotStored(LookupError):
    """The job is completed, but the return value of its handler could not be stored."""


def result(job_id: int, timeout: float = 60.0) -> Any:
    """Wait up to `timeout` seconds for a job to finish, and return its result: JSON values, or None
    for a skipped job.

    Call it outside of transactions, and not in a handler, where it would block a worker: enqueue
    the next job with `after=` instead. Raises JobFailed, NotFinished, UnknownJob or
    ResultNotStored.
    """
    for _ in poll_times(timeout):
        handler, state, stored, error = _read(job_id)
        if state in FINISHED:
            return _result(job_id, handler, state, stored, error)
        if connections.current().in_atomic_block:
            raise RuntimeError(
                f"job {job_id} is {state}, and result() waits: call it outside of transactions"
            )
    raise NotFinished(f"job {job_id} of {handler} is {state} after {timeout:g} seconds")


def _result(job_id: int, handler: str, state: str, stored: str | None, error: str) -> Any:
    if state not in DONE:
        raise JobFailed(job_id, handler, state, error)
    if state == State.COMPLETED and stored is None and error:
        raise ResultNotStored(f"job {job_id} of {handler} is completed: {error}")
    return None if stored is None else json.loads(stored)


def poll_times(
    seconds: float,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Yield at once, then after growing pauses, and a last time after `seconds`."""
    until, pause = now() + seconds, FIRST_PAUSE
    while True:
        yield
        left = until - now()
        if left <= 0:
            return
        sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)


# Not a queryset: a router may send its reads to a replica, which lags behind.
_READ = """
SELECT handler, state, CASE WHEN state = 'completed' THEN result::text END, error
FROM tailrace_jobs_job WHERE id = %(id)s
"""


def _read(job_id: int) -> tuple[str, str, str | None, str]:
    rows = query(_READ, id=job_id)
    if not rows:
        raise UnknownJob(f"there is no job {job_id}: not committed yet, or pruned")
    return rows[0]
