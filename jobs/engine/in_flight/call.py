"""One call of an async handler: the claimed job, its coroutine, and the verdict on it."""

import asyncio
import threading
import time
from contextvars import ContextVar

from asgiref.sync import ThreadSensitiveContext

from tailrace.environment.conf import conf
from tailrace.jobs.engine.in_flight.threads import JobThread
from tailrace.jobs.engine.run.failure import interrupted, verdict_of
from tailrace.jobs.engine.run.handler_call import check, job_context, timed
from tailrace.jobs.engine.run.verdict import Verdict, completed
from tailrace.jobs.handler import ClaimedJob, Outcome, TimeLimitExceeded

_ending = threading.Lock()


class Call:
    """A claimed job of this process, from its claim to its settlement."""

    def __init__(self, job: ClaimedJob, *, is_recorded: bool = True) -> None:
        self.job = job
        self.is_recorded = is_recorded
        """Whether the begin of the call is recorded in the database, once it has begun."""
        self.handler = job.handler
        self.time_limit = job.handler.time_limit or conf.JOBS_ASYNC_TIME_LIMIT
        self.began_at: float | None = None
        """When its coroutine began, by time.monotonic()."""
        self.waits_since: float | None = None
        """When it began to wait until its coroutine can begin, by time.monotonic()."""
        self.has_place = False
        """Whether it counts as one of the handler's `concurrency` calls."""
        self.renew_at = time.monotonic() + job.handler.claim_timeout / 3
        """When to renew the lease, by time.monotonic()."""
        self.destination: str | None = None
        """The destination, if the handler limits calls by `per_destination` and this one began."""
        self.full_destination: str | None = None
        """The destination, if the call did not begin because of `per_destination`."""
        self.task: asyncio.Task[Verdict] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.timed_out = False
        self.interrupted = False
        """Whether it was cancelled because its worker is shutting down."""
        self.verdict: Verdict | None = None

    def end(self, verdict: Verdict) -> bool:
        """Set the verdict if there is none yet; return whether it was set. For any thread."""
        with _ending:
            if self.verdict is not None:
                return False
            self.verdict = verdict
            return True

    def is_given_back(self) -> bool:
        """Whether the job was given back because its coroutine could not begin soon."""
        return self.began_at is None and bool(self.waits_since) and self.full_destination is None

    def out_of_time(self) -> TimeLimitExceeded:
        return TimeLimitExceeded(f"took longer than its time limit of {self.time_limit:g} s")

    def verdict_of(self, error: BaseException) -> Verdict:
        if self.interrupted and not isinstance(error, Outcome):
            return interrupted(self.job)
        if self.timed_out and isinstance(error, asyncio.CancelledError):
            error = self.out_of_time()
        return verdict_of(self.job, error)


current: ContextVar[Call | None] = ContextVar("call", default=None)
"""The call to which the running code belongs, also in its child tasks."""


async def run(call: Call, thread: JobThread | None = None) -> Verdict:
    """Await the handler and return the verdict on the job. Never raises. Run it in a separate
    context. `thread` runs the job's sync code; with None, asgiref chooses the thread."""
    current.set(call)
    try:
        with job_context(call.job), timed([call.job]):
            check(call.job)
            if thread is None:
                result = await call.handler.handle(call.job)
            else:
                async with ThreadSensitiveContext(executor=thread):
                    result = await call.handler.handle(call.job)
            return completed(call.job, result)
    except BaseException as error:  # also SystemExit: it must end this call and not the loop
        return call.verdict_of(error)
