"""One job of an async handler that is in flight: its coroutine, and the verdict on it."""

import asyncio
import threading
import time
from contextvars import ContextVar

from asgiref.sync import ThreadSensitiveContext
from django.conf import settings

from tailrace.jobs.engine.in_flight.threads import JobThread
from tailrace.jobs.engine.run.handler_call import job_context, timed
from tailrace.jobs.engine.run.verdict import Verdict, completed, interrupted, verdict_of
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.outcomes import Outcome, TimeLimitExceeded

_ending = threading.Lock()


class Call:
    """A job that this process has claimed, from its claim to its settlement."""

    def __init__(self, job: ClaimedJob, *, is_recorded: bool = True) -> None:
        self.job = job
        self.is_recorded = is_recorded
        """Whether the database knows that it has begun, once it has."""
        self.handler = job.handler
        self.time_limit = job.handler.time_limit or settings.JOBS_TIME_LIMIT
        self.began_at: float | None = None
        """When its coroutine began, by time.monotonic()."""
        self.waits_since: float | None = None
        """Since when it waits for a place, by time.monotonic()."""
        self.has_place = False
        self.renew_at = time.monotonic() + job.handler.claim_timeout / 3
        self.destination: str | None = None
        """Of a handler with `per_destination`: whose place it has."""
        self.full_destination: str | None = None
        """Where there was no place for it."""
        self.task: asyncio.Task[Verdict] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.timed_out = False
        self.interrupted = False
        """Whether it was cancelled, since its worker has to end."""
        self.verdict: Verdict | None = None

    def end(self, verdict: Verdict) -> bool:
        """Set the verdict; return whether there was none yet. Any thread: the first one counts."""
        with _ending:
            if self.verdict is not None:
                return False
            self.verdict = verdict
            return True

    def is_given_back(self) -> bool:
        """Whether it waited too long for a place, and others can do it."""
        return self.began_at is None and bool(self.waits_since) and self.full_destination is None

    def out_of_time(self) -> TimeLimitExceeded:
        return TimeLimitExceeded(f"took longer than its time limit of {self.time_limit:g} s")

    def verdict_of(self, error: BaseException) -> Verdict:
        """Return the verdict on a call that raised `error`, or was cancelled."""
        if self.interrupted and not isinstance(error, Outcome):
            return interrupted(self.job)
        if self.timed_out and isinstance(error, asyncio.CancelledError):
            error = self.out_of_time()
        return verdict_of(self.job, error)


current: ContextVar[Call | None] = ContextVar("call", default=None)
"""The call whose code runs here, its child tasks included."""


async def run(call: Call, thread: JobThread | None = None) -> Verdict:
    """Await the handler; return the verdict on the job, whatever happens.

    In a context of its own. `thread`: where the sync code of this job runs, such as Django's ORM;
    None: where asgiref runs it.
    """
    current.set(call)
    try:
        with job_context(call.job), timed([call.job]):
            _ = call.job.payload  # validates it
            if thread is None:
                result = await call.handler.handle(call.job)
            else:
                async with ThreadSensitiveContext(executor=thread):
                    result = await call.handler.handle(call.job)
            return completed(call.job, result)
    except BaseException as error:  # SystemExit, too: it is one job's, not the loop's
        return call.verdict_of(error)
