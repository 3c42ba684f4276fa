"""Bodies, parameters and responses of the API of jobs, queues and chains of events."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, Field

from tailrace.jobs.handler import LOWEST_PRIORITY
from tailrace.jobs.platform.inspection.queue_states import MEANINGS
from tailrace.web.api.pagination import PageParams
from tailrace.web.api.schemas import In, Out

Id = Annotated[int, Field(ge=1, lt=2**63)]
Name = Annotated[str, Field(max_length=200)]
Key = Annotated[str, Field(min_length=1, max_length=600)]
Time = Annotated[AwareDatetime, Field(strict=False)]
StateName = Literal["waiting", "pending", "running", "completed", "skipped", "cancelled", "failed"]
Replayable = Literal["failed", "cancelled", "skipped"]
MAX_WAIT = 20
MAX_REPLAYED = 1_000
Priority = Annotated[int, Field(ge=0, le=LOWEST_PRIORITY)]
QueueState = Annotated[
    str,
    Field(
        description=". ".join(f"`{state}`: {meaning}" for state, meaning in MEANINGS.items()),
        json_schema_extra={"enum": list(MEANINGS)},
    ),
]


class JobIn(In):
    """A job to create."""

    handler: Name
    payload: dict[str, Any] | None = None
    """Must match the handler's payload schema: `GET /api/handlers`."""
    due_at: Time | None = None
    """When the job may start; null: now. At most 366 days ahead."""
    priority: Priority | None = None
    """0 (first) to 3; null: the handler's priority."""
    unique_key: Key | None = None
    """If an unstarted job of the handler has this key, the request is merged into that job."""
    lane: Annotated[str, Field(max_length=600)] | None = None
    """The tenant, project or user, for handlers with lanes."""


class RunAgainIn(In):
    """Changes of the copied job. Null: the original's value; for `due_at`: now."""

    payload: dict[str, Any] | None = None
    due_at: Time | None = None
    priority: Priority | None = None
    unique_key: Key | None = None
    """The unique key of the new job; null: none. The original's key is not copied."""


class RequestedOut(Out):
    """The job of the request: a new job, or an existing one."""

    id: int
    handler: str
    state: str
    is_new: bool
    """False: the same request was sent before, or an unstarted job had the unique key."""


class ProgressOut(Out):
    """The progress of a job, as reported by its handler."""

    done: int
    total: int | None
    note: str


class JobOut(Out):
    """A job. If you may not see its subject, fields with names are masked as `hidden`."""

    id: int
    handler: str
    state: str
    priority: int
    routing_key: str
    lane: str
    unique_key: str | None
    attempt: int
    event_id: int | None
    schedule_id: int | None
    after_id: int | None
    """The job that this job waits for."""
    flow_id: int | None
    """The flow that it belongs to."""
    flow_name: str | None
    """Its name in the flow."""
    copy_of: int | None
    """The job of which this job is a copy, if it was run again with another payload."""
    merged: int
    """The number of requests with the unique key that were merged into this job."""
    cancel_requested: bool
    progress: ProgressOut | None
    error: str
    """The reason for the state. Texts of the handler need the permission
    `tailrace_jobs.view_job_payload`; texts of the engine do not."""
    due_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class AttemptOut(Out):
    """A claim that did not complete the job."""

    claim_no: int
    outcome: str
    times: int
    started_at: datetime | None
    finished_at: datetime
    error_class: str
    message: str


class SpanOut(Out):
    """A part of the job's time."""

    what: str
    begun: datetime
    ended: datetime
    seconds: float
    why: str
    kind: str
    """publish, wait, queued, claim, run or end."""


class JobDetails(JobOut):
    """A job with its payload, result, attempts and times."""

    payload: Any
    """Null without the permission `tailrace_jobs.view_job_payload`."""
    result: Any
    """The result of the handler; null without the permission `tailrace_jobs.view_job_payload`."""
    attempts: list[AttemptOut]
    """The last 100 attempts, newest first."""
    time_spent: list[SpanOut]
    version: str
    """Changes with the job's state and progress. Send it as `after` to wait for the next change."""


class LogParams(BaseModel):
    """Which lines of a job's log."""

    claim_no: Annotated[
        int | None, Field(ge=1, lt=2**31, description="default: the newest claim with a log")
    ] = None
    after: Annotated[int, Field(ge=0, lt=2**31, description="only lines with a higher number")] = 0


class LogLineOut(Out):
    """A line that a handler logged."""

    number: int
    """Counts from 1 in each claim."""
    at: datetime
    text: str


class LogOut(Out):
    """The log of one claim of a job."""

    claim_no: int | None
    """Null: the job has no log."""
    lines: list[LogLineOut]
    """The last 200 lines, oldest first."""
    claims: list[int]
    """The claims with a log, newest first. The logs of the last ten claims are kept."""


class RescheduleIn(In):
    """The new due time and priority of a pending job; null: unchanged."""

    due_at: Time | None = None
    priority: Priority | None = None


class WaitParams(BaseModel):
    """How long to wait for a job, and for which change."""

    wait: Annotated[int, Field(ge=0, le=MAX_WAIT, description="maximum wait in seconds")] = 0
    after: Annotated[
        str | None,
        Field(
            max_length=64,
            description="`version` of the last response: wait until the version changes; without"
            " it, wait until the job is finished",
        ),
    ] = None


class JobFilter(PageParams):
    """Which jobs to list."""

    handler: Name | None = None
    state: StateName | None = None
    event: Id | None = None
    flow: Annotated[Id | None, Field(description="the id of a flow")] = None
    connected_with: Annotated[
        Id | None,
        Field(description="the id of a job: lists the jobs that wait for one another by `after`"),
    ] = None
    schedule: Id | None = None
    failure: Annotated[Id | None, Field(description="the id of a group of failures")] = None
    search: Annotated[
        str | None,
        Field(
            max_length=400,
            description="searches as in the admin's list of jobs: an id, a queue, the start of a"
            " subject, a part of an error, or terms with queue: subject: key: lane: error: state:"
            " since: until: and field=value",
        ),
    ] = None


class JobPage(Out):
    """A page of jobs, newest first."""

    items: list[JobOut]
    next: str | None
    """The cursor of the next page. A page with few or no items may have a next page: if no index
    serves the filters, a page reads only 10,000 jobs. With `since:` and `until:` in a search, it
    reads only jobs of that time."""
    left_out: str = ""
    """Which jobs were not searched, and how to narrow the search; empty: all were searched."""


class ReplayIn(In):
    """Which jobs to replay: the jobs that match all of these filters."""

    state: Replayable = "failed"
    handler: Name | None = None
    event: Id | None = None
    schedule: Id | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_REPLAYED)] = 100
    """Maximum number of jobs to process in this request, newest first."""
    cursor: Annotated[str, Field(max_length=200)] | None = None
    """`next` of the last response."""
    dry_run: bool = False
    """Change nothing; return the number of matching jobs and a sample."""


class ReplayOut(Out):
    """The replayed jobs, or, in a dry run, the jobs that would be replayed."""

    dry_run: bool
    jobs: int
    """The number of replayed jobs, dependent jobs included; in a dry run, of matching jobs."""
    sample: list[JobOut]
    """In a dry run: the first matching jobs."""
    refused: dict[str, int]
    """The number of jobs that were not replayed, by reason."""
    next: str | None
    """The cursor to continue with; null: all matching jobs were processed."""


class OperatedOut(Out):
    """The state of the job after the operation."""

    id: int
    state: str
    stop_requested: bool
    """The job was running: it stops the next time its handler checks for cancellation."""


class HandlerOut(Out):
    """A handler, which is a queue."""

    name: str
    about: str
    payload_schema: dict[str, Any] | None
    """JSON Schema of the payload; null: the handler takes no payload, or there is no schema."""
    takes_payload: bool
    request_permission: str | None
    """The permission to request jobs of this handler; null: it accepts no requests."""
    may_request: bool
    """Whether you may request its jobs; a token also needs the scope `jobs:write`."""
    max_attempts: int
    priority: int
    has_lanes: bool
    merge: str
    """What a request does to an unstarted job with the same unique key: `keep` leaves the job
    unchanged, `replace` gives it the newer payload."""


class QueueOut(Out):
    """A queue. Its counts stop at 10,000, which means 10,000 or more."""

    name: str
    """The name of the queue and of its handler."""
    state: QueueState
    pending: int
    """Jobs that have not started, due jobs included."""
    due: int
    """Jobs that could start now."""
    running: int
    failed: int
    completed: int
    """Jobs completed in the last hour."""
    oldest_due: datetime | None
    """The time since which the oldest due job has been due."""
    max_running: int | None
    """Maximum number of jobs that run at once; null: no limit."""
    rate_limit: float | None
    """Maximum number of jobs that start per second; null: no limit."""


class ChainedEvent(Out):
    """An event of a chain, with its jobs."""

    id: int
    type: str
    subject: str
    occurred_at: datetime
    parent: int | None
    """The event's cause in this list. If you may not read the cause, it is the nearest earlier
    cause that you may read. Null: no cause is in this list."""
    level: int
    """The number of events above this event in the tree of this list."""
    state: str
    """`no jobs`, `in progress`, `settled` or `has failures`."""
    jobs: list[JobOut] | None
    """The first eight jobs; null for a token without the scope `jobs:read`."""
    has_more_jobs: bool
    has_more_effects: bool
    """Whether the event caused events that are not in this list."""


class ChainOut(Out):
    """The causes and effects of an event."""

    events: list[ChainedEvent]
    """Each event before its effects: at most 60, plus up to 20 causes of the requested event."""
