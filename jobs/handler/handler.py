"""The base class of handlers, and the claimed job that a handler gets.

A handler, its queue and its Celery task have the same name.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from asgiref.sync import iscoroutinefunction, sync_to_async
from pydantic import BaseModel, ValidationError

from tailrace.db import connections
from tailrace.db.connections import with_reconnect
from tailrace.db.query import execute, query
from tailrace.db.sql.plans import unindexed
from tailrace.environment.discovery import Described
from tailrace.events.publish import Recorded
from tailrace.events.publishing.validation import describe
from tailrace.events.readers import Readers
from tailrace.events.types import EventType, find_type, load_payload
from tailrace.jobs.handler.backoff import Backoff
from tailrace.jobs.handler.outcomes import (
    CancelRequested,
    Completed,
    LeaseLost,
    Permanent,
    Retry,
    Skip,
    Snooze,
)
from tailrace.jobs.handler.parents import Parents
from tailrace.jobs.handler.schedule import Cron, Every
from tailrace.jobs.runtime import job_log, shutdown

LOWEST_PRIORITY = 3
MERGES = ("keep", "replace")
NO_LANE = "-"
"""The lane of a job for which its fair or ordered handler returns no lane."""


class Handler(Described):
    """One kind of side effect. Write subclasses in `handlers.py` of any installed app.

    Define either `handle(job)`, which may be an `async def`, or `handle_batch(jobs)`. When it
    returns, the job is completed. Raise Retry, Snooze, Skip, Cancel or Permanent for another
    outcome; after any other exception the job is retried by `backoff`. A job may run twice if its
    worker is killed, so make effects idempotent.
    """

    name: ClassVar[str] = ""
    on: ClassVar[Sequence[type[EventType] | str]] = ()
    """Event types, with their subclasses, whose events get a job. Event types of another domain
    are given by name, since a domain must not import another."""
    Payload: ClassVar[type[BaseModel] | None] = None
    """Validates the payload of a job that is enqueued or scheduled."""
    batch_size: ClassVar[int] = 10
    """Jobs per claim and call of `handle_batch`."""
    quiet: ClassVar[bool] = False
    """True if the handler notifies no person or system outside. Only such handlers get jobs for
    quiet events (`EventType.is_quiet`)."""
    max_attempts: ClassVar[int] = 4
    backoff: ClassVar[Backoff] = Backoff(60, 300, 900)
    claim_timeout: ClassVar[float] = 60
    """Seconds of a lease: after this, another worker takes over the job of a lost worker."""
    max_running: ClassVar[int | None] = None
    """Maximum number of jobs that run at once, in all workers. None: no limit."""
    rate_limit: ClassVar[float | None] = None
    """Jobs that may start per second, in all workers. None: no limit."""
    concurrency: ClassVar[int] = 10
    """Async handlers: maximum number of calls in flight per worker process."""
    per_destination: ClassVar[int | None] = None
    """Async handlers: maximum number of calls in flight per destination and worker process. None:
    no limit."""
    fair: ClassVar[bool] = False
    """Take jobs from the lanes in turn."""
    ordered: ClassVar[bool] = False
    """Run at most one job per lane at a time, in the order of publishing."""
    time_limit: ClassVar[float | None] = None
    """Seconds that one call may take. None: JOBS_TIME_LIMIT, or JOBS_ASYNC_TIME_LIMIT."""
    worker_queue: ClassVar[str | None] = None
    """The Celery queue whose workers run its jobs. None: a queue of its own, with its name."""
    one_job_per_drain: ClassVar[bool] = False
    """Whether a Celery task runs one of its jobs, and not as many as it can in some seconds."""
    priority: ClassVar[int] = 1
    """0 (first) to 3."""
    delay: ClassVar[float] = 0
    """Seconds from publish until the job is due. With `unique_key`, a burst becomes one job."""
    merge: ClassVar[Literal["keep", "replace"]] = "keep"
    """How a job is merged into an unstarted job with the same `unique_key`. "keep": the unstarted
    job keeps its event and payload. "replace": it gets the event and payload of the newer job. In
    both cases it keeps the earlier due time."""
    backfill: ClassVar[float | None] = None
    """Seconds: the sweeper creates the missing jobs of events that are younger than this."""
    schedule: ClassVar[Every | Cron | None] = None
    searchable: ClassVar[Sequence[str]] = ()
    """Fields of `Payload` whose values can be searched for, in the admin and by the API."""
    request_permission: ClassVar[str | None] = None
    """The permission (`app.codename`) that a user needs to create jobs of this handler, by the API
    or by *Run now* in the admin, with any valid payload. None: no user may create them."""

    @classmethod
    def event_types(cls) -> tuple[type[EventType], ...]:
        """Return the types in `on`, without types of domains that are not installed."""
        types = [find_type(each) if isinstance(each, str) else each for each in cls.on]
        return tuple(each for each in types if each is not None)

    def schedule_keys(self) -> Sequence[str]:
        """Return one routing key per schedule of this handler. An empty list disables it."""
        return ("",)

    def wants(self, event: Recorded) -> bool:
        """Return whether this event, whose type is in `on`, gets jobs."""
        return True

    def routing_keys(self, event: Recorded) -> Sequence[str]:
        """Return one key for each job that the event gets: per backend, per endpoint …"""
        return ("",)

    def lane(self, event: Recorded, routing_key: str) -> str:
        """Return the lane of the job: a tenant, project or user, for fairness and order."""
        return ""

    def batch_sizes(self) -> Mapping[str, int]:
        """Return batch sizes by batch key, for a fair handler with `handle_batch`; other keys use
        `batch_size`. With this method, each batch has jobs of only one batch key: the end of their
        lanes, after the last `/`."""
        return {}

    def payload_lane(self, payload: Mapping[str, Any]) -> str:
        """Return the lane of a job without an event, given its stored payload. Called for scheduled
        jobs, and for jobs that are enqueued or requested without a lane."""
        return ""

    def lane_without_event(self, payload: str | None, lane: str = "") -> str:
        """Return `lane` if it is not empty, else the lane that the handler derives from the JSON
        text `payload`. Raises ValueError if the handler's `payload_lane` raises."""
        if not lane and payload and type(self).payload_lane is not Handler.payload_lane:
            try:
                lane = self.payload_lane(json.loads(payload))
            except Exception as error:
                raise ValueError(f"{self.name}: payload_lane raised {error!r}") from error
        return (lane or NO_LANE) if self.in_lanes() else lane

    def unique_key(self, event: Recorded, routing_key: str) -> str | None:
        """Return a key that only one unstarted job may have at a time, or None.

        Later jobs with the same key are merged into the unstarted job, by `merge`. That job begins
        only after the transactions of all merged jobs have committed.
        """
        return None

    def payload_readers(self, payloads: Mapping[int, Any]) -> Mapping[int, Readers | None]:
        """Return the readers of jobs with these payloads, by the job's id; None if all users are.
        For jobs without an event only: the type of an event decides about its jobs."""
        return dict.fromkeys(payloads)

    @classmethod
    def restricts_payloads(cls) -> bool:
        return cls.payload_readers is not Handler.payload_readers

    def destination(self, job: "ClaimedJob") -> str:
        """Return the destination of the job, for `per_destination`. It runs in the event loop, so
        it must not use the database."""
        return job.lane or job.routing_key

    def handle(self, job: "ClaimedJob") -> Any:
        raise TypeError(f"{self.name} has neither handle nor handle_batch")

    def handle_batch(self, jobs: "Sequence[ClaimedJob]") -> Any:
        """Handle several jobs together. Jobs for which it sets no outcome are completed. The return
        value is not recorded, but a returned outcome counts as if it was raised."""
        raise TypeError(f"{self.name} has neither handle nor handle_batch")

    def variant(self, name: str) -> "Handler | None":
        """Return the handler `name`, which begins with the name of this one and `@`, or None."""
        return None

    @classmethod
    def in_batches(cls) -> bool:
        return cls.handle_batch is not Handler.handle_batch

    @classmethod
    def in_batches_by_key(cls) -> bool:
        """Whether each batch has jobs of only one batch key, with the batch size of that key."""
        return cls.batch_sizes is not Handler.batch_sizes

    @classmethod
    def is_async(cls) -> bool:
        return iscoroutinefunction(cls.handle)

    @classmethod
    def in_lanes(cls) -> bool:
        return cls.fair or cls.ordered

    @classmethod
    def lanes_are_destinations(cls) -> bool:
        """Whether lanes are destinations, each with `per_destination` calls in flight at most."""
        own = cls.destination is not Handler.destination
        return cls.fair and cls.per_destination is not None and not own


OWN_CLAIM = (
    f"id = %(id)s AND {unindexed('state')} = 'running'"
    " AND claim_no = %(claim_no)s AND worker = %(worker)s"
)
_PROGRESS = (
    "UPDATE tailrace_jobs_live SET progress_done = %(done)s, progress_total = %(total)s,"
    f" progress_note = %(note)s WHERE {OWN_CLAIM}"
)
_CANCEL_REQUESTED = f"SELECT cancel_requested FROM tailrace_jobs_live WHERE {OWN_CLAIM}"


@dataclass(slots=True, eq=False)
class ClaimedJob:
    """A job that this worker has claimed: it may run the job until it settles it or loses the
    lease."""

    id: int
    handler: Handler
    routing_key: str
    raw_payload: Any
    lane: str
    attempt: int
    claim_no: int
    worker: str
    event_row: Sequence[Any] | None
    event_id: int | None = None
    """The id of the job's event, also if the event was deleted."""
    isolate: bool = False
    """True if a worker was lost while it ran this job: the claim has no other job."""
    suspect_group: int | None = None
    """For jobs of batch handlers: see `Job.suspect_group`."""
    waited: float = 0.0
    """Seconds from the due time to the claim."""
    claimed_at: float = field(default_factory=time.monotonic, repr=False)
    """The time of the claim, by time.monotonic()."""
    call_after: float | None = None
    """Seconds from the claim until the last call of the handler began; None: no call yet."""
    call_took: float | None = None
    """Seconds that the call took, with the other jobs of the batch; None: no call has ended."""
    span: Any = None
    """The trace span of the claim, if spans are sent."""
    is_last: bool = False
    """Set by the handler if no other attempt may follow when it raises an error."""
    is_logged: bool = False
    """Set by the handler if it has logged the error that it raises."""
    outcome: Any = None
    """The Outcome or Completed that `handle_batch` set for this job."""
    blamed_for: BaseException | None = None
    """The error that the block `with job.blamed()` raised."""
    blamed_since: float = 0.0
    """When that block began, by time.monotonic()."""
    _payload: BaseModel | None = field(default=None, repr=False)
    _event: Recorded | None = field(default=None, repr=False)
    _lines: int = field(default=0, repr=False)

    @property
    def event(self) -> Recorded | None:
        """The event of this job; None if the job was enqueued or scheduled."""
        if self._event is None and self.event_row is not None:
            self._event = Recorded.from_row(self.event_row)
        return self._event

    def require_event(self) -> Recorded:
        """Return the event of this job, for handlers whose jobs all have one. Raises Permanent if
        the job was enqueued without an event, or the event was deleted."""
        if self.event is None:
            deleted = self.event_id is not None
            raise Permanent(f"event {self.event_id} was deleted" if deleted else "it has no event")
        return self.event

    @property
    def max_attempts(self) -> int:
        return self.handler.max_attempts

    @property
    def payload(self) -> Any:
        """The payload as an instance of the handler's Payload; None if it declares none. Raises
        Permanent if the stored payload is invalid."""
        if self._payload is None and self.handler.Payload is not None:
            raw = {} if self.raw_payload is None else self.raw_payload
            try:
                self._payload = load_payload(self.handler.Payload, raw)
            except ValidationError as error:
                raise Permanent(f"payload does not validate: {describe(error)}") from None
        return self._payload

    def parents(self) -> Parents:
        """Return the jobs that this job waited for, with their results: see Parents."""
        return Parents(self.id)

    def progress(self, done: int, total: int | None = None, note: str = "") -> None:
        """Record the progress of the job, which operators see while it runs."""
        fields = {"done": done, "total": total, "note": note[:500]}
        with connections.engine():
            with_reconnect(lambda: execute(_PROGRESS, **self._key(), **fields))

    def log(self, message: object) -> None:
        """Add the message to the job's log, which operators see while the job runs; also from async
        handlers and `handle_batch`.

        It returns at once, and the line is kept whatever the outcome of the call: the last 200
        lines of each claim, with up to 500 characters each. Do not log secrets: all users with the
        permission to see payloads can read the log.
        """
        for line in job_log.lines_of(str(message)):
            self._lines += 1
            job_log.add(self.id, self.claim_no, self._lines, line)

    def check_cancelled(self) -> None:
        """Raise CancelRequested if an operator cancelled the job, or LeaseLost if another worker
        has claimed it. It takes one query: call it between steps, not for each row."""
        with connections.engine():
            rows = with_reconnect(lambda: query(_CANCEL_REQUESTED, **self._key()))
        if not rows:
            raise LeaseLost("another worker has claimed the job")
        if rows[0][0]:
            raise CancelRequested("cancelled while running")

    def shutting_down(self) -> bool:
        """Whether the worker is shutting down. After SHUTDOWN_TIMEOUT seconds the call is
        interrupted and the job runs again elsewhere. A long call may end earlier, such as by
        `raise Snooze`."""
        return shutdown.requested()

    async def aprogress(self, done: int, total: int | None = None, note: str = "") -> None:
        """`progress`, for async handlers."""
        await sync_to_async(self.progress)(done, total, note)

    async def acheck_cancelled(self) -> None:
        """`check_cancelled`, for async handlers."""
        await sync_to_async(self.check_cancelled)()

    def _key(self) -> dict[str, Any]:
        return {"id": self.id, "claim_no": self.claim_no, "worker": self.worker}

    # For `handle_batch`: each method sets the outcome of this job. The default is `complete`.

    def complete(self, result: Any = None) -> None:
        self.outcome = Completed(result)

    def retry(self, reason: str = "", *, after: float | None = None) -> None:
        self.outcome = Retry(reason, after=after)

    def snooze(self, reason: str = "", *, seconds: float) -> None:
        self.outcome = Snooze(reason, seconds=seconds)

    def skip(self, reason: str) -> None:
        self.outcome = Skip(reason)

    def fail(self, reason: str) -> None:
        self.outcome = Permanent(reason)

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """If the block makes `handle_batch` raise, this job is settled with the error, and the
        other jobs are called again without it."""
        self.blamed_since = time.monotonic()
        try:
            yield
        except BaseException as error:
            self.blamed_for = error
            raise
