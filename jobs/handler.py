"""The base class of handlers, the code of one side effect each, and the job that they get.

A handler's name is its queue's and its Celery task's name.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from asgiref.sync import iscoroutinefunction, sync_to_async
from pydantic import BaseModel, ValidationError

from tailrace.db import connections
from tailrace.db.plans import unindexed
from tailrace.db.query import execute, query
from tailrace.db.reconnect import with_reconnect
from tailrace.events.discovery import Described
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.events.types import EventType, find_type, load_payload
from tailrace.events.validation import describe
from tailrace.jobs import job_log, shutdown
from tailrace.jobs.backoff import Backoff
from tailrace.jobs.outcomes import CancelRequested, LeaseLost, Permanent, Retry, Skip, Snooze


@dataclass(frozen=True, slots=True)
class Every:
    """A schedule by interval."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule by a cron expression of five fields, in a time zone."""

    expression: str
    tz: str = "UTC"
    catch_up: str = "latest"


LOWEST_PRIORITY = 3
MERGES = ("keep", "replace")
NO_LANE = "-"
"""The lane of a job whose fair or ordered handler returns none."""


class Handler(Described):
    """One kind of side effect. Write it in `handlers.py` of any installed app.

    Give either `handle(job)`, which may be an `async def`, or `handle_batch(jobs)`.
    Return = completed; raise Retry, Snooze, Skip, Cancel or Permanent for the rest; any other
    exception is retried by `backoff`.
    A job may run twice when its worker is killed, so effects are made idempotent.
    """

    name: ClassVar[str] = ""
    on: ClassVar[Sequence[type[EventType] | str]] = ()
    """Event types whose events get a job, their subclasses included. A domain gives those of
    another domain by their names, since it must not import them."""
    Payload: ClassVar[type[BaseModel] | None] = None
    """Validates the payload of a job that is enqueued or scheduled."""
    batch_size: ClassVar[int] = 10
    """Jobs per claim and call of `handle_batch`."""
    quiet: ClassVar[bool] = False
    """Whether it notifies nobody outside, so that it also handles events that are only recorded
    (`EventType.is_quiet`)."""
    max_attempts: ClassVar[int] = 4
    backoff: ClassVar[Backoff] = Backoff(60, 300, 900)
    claim_timeout: ClassVar[float] = 60
    """Seconds until a job whose worker is lost is given to another."""
    max_running: ClassVar[int | None] = None
    """Jobs that run at once, all workers together."""
    concurrency: ClassVar[int] = 10
    """Of an async handler: calls in flight at once, per worker process."""
    per_destination: ClassVar[int | None] = None
    """Of an async handler: of these, to one destination at once. None: no limit."""
    fair: ClassVar[bool] = False
    """Take jobs from the lanes in turn."""
    ordered: ClassVar[bool] = False
    """At most one running job per lane, in the order of publishing."""
    time_limit: ClassVar[float | None] = None
    """Seconds for one call; None is JOBS_TIME_LIMIT."""
    priority: ClassVar[int] = 1
    """0 (first) to 3."""
    delay: ClassVar[float] = 0
    """Seconds from publish to due; with `unique_key`, a burst becomes one job."""
    merge: ClassVar[Literal["keep", "replace"]] = "keep"
    """What becomes of an unstarted job when another with its `unique_key` is merged into it: it
    keeps its own event and payload, or gets those of the newer one. It keeps the earlier due time
    in both cases."""
    backfill: ClassVar[float | None] = None
    """Seconds: the sweeper makes missing jobs for events that are younger."""
    schedule: ClassVar[Every | Cron | None] = None
    searchable: ClassVar[Sequence[str]] = ()
    """Fields of `Payload` by whose values its jobs are found, in the admin and by the API."""
    request_permission: ClassVar[str | None] = None
    """The permission (`app.codename`) of users who may create its jobs, by the API and by *Run now*
    in the admin, with any payload that validates. None: nobody may."""

    @classmethod
    def event_types(cls) -> tuple[type[EventType], ...]:
        """Return the types in `on`, without those whose domain is not installed."""
        types = [find_type(each) if isinstance(each, str) else each for each in cls.on]
        return tuple(each for each in types if each is not None)

    def schedule_keys(self) -> Sequence[str]:
        """Return one routing key per schedule of this handler; none switches it off."""
        return ("",)

    def wants(self, event: Recorded) -> bool:
        """Return whether this event, of a type in `on`, gets a job at all."""
        return True

    def routing_keys(self, event: Recorded) -> Sequence[str]:
        """Return one key per job of the event: per backend, per endpoint …"""
        return ("",)

    def lane(self, event: Recorded, routing_key: str) -> str:
        """Return the tenant, project or user for fairness and order."""
        return ""

    def batch_sizes(self) -> Mapping[str, int]:
        """Return the batch size of each lane, of a fair handler with `handle_batch`. A handler that
        defines it gets batches of one lane alone; other lanes have `batch_size`."""
        return {}

    def payload_lane(self, payload: Mapping[str, Any]) -> str:
        """Return the lane of a job that no event caused, by its payload as it is stored: of one
        that is scheduled, or enqueued or requested without a lane."""
        return ""

    def lane_without_event(self, payload: str | None, lane: str = "") -> str:
        """Return the lane of a job with this JSON as its payload; `lane` if one is named. Raises
        ValueError if the handler cannot tell."""
        if not lane and payload and type(self).payload_lane is not Handler.payload_lane:
            try:
                lane = self.payload_lane(json.loads(payload))
            except Exception as error:
                raise ValueError(f"{self.name} finds no lane: {error!r}") from error
        return (lane or NO_LANE) if self.in_lanes() else lane

    def unique_key(self, event: Recorded, routing_key: str) -> str | None:
        """Return a key that only one unstarted job may have at a time, or None.

        While there is such a job, the others are merged into it, by `merge`. It begins after the
        commit of all whose jobs were merged into it.
        """
        return None

    def payload_readers(self, payloads: Mapping[int, Any]) -> Mapping[int, Readers | None]:
        """Return who alone may read of jobs with these payloads, by the job's id; None: everybody.

        Of jobs that no event caused: of the others it is the event's type that says who.
        """
        return dict.fromkeys(payloads)

    @classmethod
    def restricts_payloads(cls) -> bool:
        return cls.payload_readers is not Handler.payload_readers

    def destination(self, job: "ClaimedJob") -> str:
        """Return what `per_destination` counts by. It runs in the event loop: no database."""
        return job.lane or job.routing_key

    def handle(self, job: "ClaimedJob") -> Any:
        raise TypeError(f"{self.name} has neither handle nor handle_batch")

    def handle_batch(self, jobs: "Sequence[ClaimedJob]") -> Any:
        """Handle several jobs together; those without an outcome of their own are completed.

        Nothing is recorded of what it returns, but an outcome that it returns counts as raised.
        """
        raise TypeError(f"{self.name} has neither handle nor handle_batch")

    @classmethod
    def in_batches(cls) -> bool:
        return cls.handle_batch is not Handler.handle_batch

    @classmethod
    def in_batches_by_lane(cls) -> bool:
        """Whether a batch has jobs of one lane alone, with a size of its own."""
        return cls.batch_sizes is not Handler.batch_sizes

    @classmethod
    def is_async(cls) -> bool:
        return iscoroutinefunction(cls.handle)

    @classmethod
    def in_lanes(cls) -> bool:
        return cls.fair or cls.ordered

    @classmethod
    def lanes_are_destinations(cls) -> bool:
        """Whether each lane is a destination with `per_destination` places."""
        own = cls.destination is not Handler.destination
        return cls.fair and cls.per_destination is not None and not own


@dataclass(frozen=True, slots=True)
class Completed:
    result: Any = None


_MINE = (
    f"id = %(id)s AND {unindexed('state')} = 'running'"
    " AND claim_no = %(claim_no)s AND worker = %(worker)s"
)
_PROGRESS = (
    "UPDATE tailrace_jobs_live SET progress_done = %(done)s, progress_total = %(total)s,"
    f" progress_note = %(note)s WHERE {_MINE}"
)
_CANCEL_REQUESTED = f"SELECT cancel_requested FROM tailrace_jobs_live WHERE {_MINE}"


@dataclass(slots=True, eq=False)
class ClaimedJob:
    """A job that this worker has the right to try, until it settles or its lease runs out."""

    id: int
    handler: Handler
    routing_key: str
    raw_payload: Any
    lane: str
    attempt: int
    claim_no: int
    worker: str
    event_row: Sequence[Any] | None
    isolate: bool = False
    """Claimed alone: its worker was lost while it ran."""
    suspect_group: int | None = None
    """Of a batch handler's job: see `Job.suspect_group`."""
    waited: float = 0.0
    """Seconds from when it was due to its claim."""
    claimed_at: float = field(default_factory=time.monotonic, repr=False)
    """By time.monotonic()."""
    call_after: float | None = None
    """Seconds from its claim until its last call began; None: it had no call."""
    call_took: float | None = None
    """Seconds that its call took, with the other jobs of its batch; None: it had no call."""
    span: Any = None
    """Where spans are sent: that of its claim."""
    outcome: Any = None
    """What `handle_batch` set for this job alone: an Outcome, or Completed."""
    _payload: BaseModel | None = field(default=None, repr=False)
    _event: Recorded | None = field(default=None, repr=False)
    _lines: int = field(default=0, repr=False)

    @property
    def event(self) -> Recorded | None:
        """The event of this job; None if it was enqueued or scheduled."""
        if self._event is None and self.event_row is not None:
            self._event = Recorded.from_row(self.event_row)
        return self._event

    @property
    def max_attempts(self) -> int:
        return self.handler.max_attempts

    @property
    def payload(self) -> Any:
        """The validated payload of an enqueued job: an instance of the handler's Payload."""
        if self._payload is None and self.handler.Payload is not None:
            raw = {} if self.raw_payload is None else self.raw_payload
            try:
                self._payload = load_payload(self.handler.Payload, raw)
            except ValidationError as error:
                raise Permanent(f"payload does not validate: {describe(error)}") from None
        return self._payload

    def progress(self, done: int, total: int | None = None, note: str = "") -> None:
        """Record how far the job is; shown to operators while it runs."""
        fields = {"done": done, "total": total, "note": note[:500]}
        with connections.engine():
            with_reconnect(lambda: execute(_PROGRESS, **self._key(), **fields))

    def log(self, message: object) -> None:
        """Add a line to the job's log, which operators see while it runs; from async handlers and
        `handle_batch`, too.

        It waits for nothing, and stays whatever the call ends with. Of each claim the last 200
        lines are kept, of up to 500 characters each. Log no secrets: who may see payloads sees it.
        """
        for line in job_log.lines_of(str(message)):
            self._lines += 1
            job_log.add(self.id, self.claim_no, self._lines, line)

    def check_cancelled(self) -> None:
        """Raise CancelRequested if an operator cancelled the job, LeaseLost if it is not ours now.

        One small query: call it between steps, not per row.
        """
        with connections.engine():
            rows = with_reconnect(lambda: query(_CANCEL_REQUESTED, **self._key()))
        if not rows:
            raise LeaseLost("another worker has claimed the job")
        if rows[0][0]:
            raise CancelRequested("cancelled while running")

    def shutting_down(self) -> bool:
        """Whether the worker has to end: after SHUTDOWN_GRACE seconds the call is interrupted, and
        the job is run again elsewhere. A long call may end before, as with `raise Snooze`."""
        return shutdown.requested()

    async def aprogress(self, done: int, total: int | None = None, note: str = "") -> None:
        """`progress`, for async handlers."""
        await sync_to_async(self.progress)(done, total, note)

    async def acheck_cancelled(self) -> None:
        """`check_cancelled`, for async handlers."""
        await sync_to_async(self.check_cancelled)()

    def _key(self) -> dict[str, Any]:
        return {"id": self.id, "claim_no": self.claim_no, "worker": self.worker}

    # For handle_batch: a job without one of these outcomes is completed.

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
