"""Bodies, parameters and responses of the API of jobs."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, Field

from tailrace.jobs.handler import LOWEST_PRIORITY
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


class JobIn(In):
    """A job to create."""

    handler: Name
    payload: dict[str, Any] | None = None
    """By the handler's schema: `GET /api/handlers`."""
    due_at: Time | None = None
    """When it may begin; null: now. At most 366 days ahead."""
    priority: Annotated[int, Field(ge=0, le=LOWEST_PRIORITY)] | None = None
    """0 (first) to 3; null: the handler's."""
    unique_key: Key | None = None
    """While an unstarted job of the handler has this key, the job is merged into that one."""
    lane: Annotated[str, Field(max_length=600)] | None = None
    """The tenant, project or user, for handlers with lanes."""


class RunAgainIn(In):
    """A job like another; null: as that one, but for `due_at`: now."""

    payload: dict[str, Any] | None = None
    due_at: Time | None = None
    priority: Annotated[int, Field(ge=0, le=LOWEST_PRIORITY)] | None = None
    unique_key: Key | None = None
    """It is not copied."""


class RequestedOut(Out):
    """The job that does what was requested."""

    id: int
    handler: str
    state: str
    is_new: bool
    """False: the request was sent before, or an unstarted job had the unique key."""


class ProgressOut(Out):
    """How far a job is, as its handler said."""

    done: int
    total: int | None
    note: str


class JobOut(Out):
    """A job. Of one about something that you may not see, the names of it are `hidden`."""

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
    """The job that it waits for."""
    copy_of: int | None
    """The job that was run again as this one, with another payload."""
    merged: int
    """Jobs with its unique key that were merged into it."""
    cancel_requested: bool
    progress: ProgressOut | None
    error: str
    """Why it is in its state. Needs the permission `tailrace_jobs.view_job_payload`, but for the
    engine's own words."""
    due_at: datetime
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class AttemptOut(Out):
    """Claims that did not complete the job."""

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
    """A job with all that is known of it."""

    payload: Any
    """Null without the permission `tailrace_jobs.view_job_payload`."""
    result: Any
    """What its handler returned; null without the permission `tailrace_jobs.view_job_payload`."""
    attempts: list[AttemptOut]
    """The last 100, the newest first."""
    time_spent: list[SpanOut]
    version: str
    """Changes with the job's state and progress: send it as `after` to wait for the next."""


class LogParams(BaseModel):
    """Which lines of a job's log."""

    claim_no: Annotated[
        int | None, Field(ge=1, lt=2**31, description="without it, the newest claim with a log")
    ] = None
    after: Annotated[int, Field(ge=0, lt=2**31, description="only lines with a higher number")] = 0


class LogLineOut(Out):
    """A line that a handler logged."""

    number: int
    """From 1, in each claim."""
    at: datetime
    text: str


class LogOut(Out):
    """The log of one claim of a job."""

    claim_no: int | None
    """Null: the job has no log."""
    lines: list[LogLineOut]
    """The last 200, oldest first."""
    claims: list[int]
    """The claims that have a log, newest first: the last ten are kept."""


class RescheduleIn(In):
    """When a pending job is due, and its priority; null: as it is."""

    due_at: Time | None = None
    priority: Annotated[int, Field(ge=0, le=LOWEST_PRIORITY)] | None = None


class WaitParams(BaseModel):
    """How long to wait for a job, and for what."""

    wait: Annotated[int, Field(ge=0, le=MAX_WAIT, description="seconds to wait at most")] = 0
    after: Annotated[
        str | None,
        Field(
            max_length=64,
            description="`version` of the last response: wait until it is another one; without it,"
            " wait until the job is finished",
        ),
    ] = None


class JobFilter(PageParams):
    """Which jobs to list."""

    handler: Name | None = None
    state: StateName | None = None
    event: Id | None = None
    flow: Annotated[
        Id | None,
        Field(description="a job: it, and the jobs that wait for one another with it"),
    ] = None
    schedule: Id | None = None
    failure: Annotated[Id | None, Field(description="a group of failures: its failed jobs")] = None
    search: Annotated[
        str | None,
        Field(
            max_length=400,
            description="as in the admin's list of jobs: an id, a queue, the start of a subject, a"
            " part of an error, or queue: subject: key: lane: error: state: since: until: and"
            " field=value",
        ),
    ] = None


class JobPage(Out):
    """A page of jobs, newest first."""

    items: list[JobOut]
    next: str | None
    """The cursor of the next page. A page may have few items, or none, and yet a next one: without
    an index for the filters it reads 10,000 jobs. `since:` and `until:` of a search make it read
    those of that time."""
    left_out: str = ""
    """Which jobs the search did not look at, and how to narrow it; empty: none."""


class ReplayIn(In):
    """Which jobs to replay: those that all of these describe."""

    state: Replayable = "failed"
    handler: Name | None = None
    event: Id | None = None
    schedule: Id | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_REPLAYED)] = 100
    """Jobs to look at in this request, newest first."""
    cursor: Annotated[str, Field(max_length=200)] | None = None
    """`next` of the last response."""
    dry_run: bool = False
    """Change nothing, and return how many jobs there are and some of them."""


class ReplayOut(Out):
    """What was replayed, or would be."""

    dry_run: bool
    jobs: int
    """Jobs that were replayed, with those that waited for them; of a dry run, those to replay."""
    sample: list[JobOut]
    """Of a dry run: the first of them."""
    refused: dict[str, int]
    """Why jobs were not replayed, and how many."""
    next: str | None
    """The cursor with which to go on; null: that was all."""


class OperatedOut(Out):
    """What became of the job."""

    id: int
    state: str
    stop_requested: bool
    """It was running: it stops when its handler looks."""


class HandlerOut(Out):
    """A handler, which is a queue."""

    name: str
    about: str
    payload_schema: dict[str, Any] | None
    """JSON Schema of the payload; null: it takes none, or its model has no schema."""
    takes_payload: bool
    request_permission: str | None
    """The permission to request its jobs; null: nobody may."""
    may_request: bool
    """Whether you may, with a token that has the scope `jobs:write`."""
    max_attempts: int
    priority: int
    has_lanes: bool
    merge: str
    """What becomes of an unstarted job with the unique key: `keep` leaves it as it is, `replace`
    gives it the newer payload."""
