"""Parameters, bodies and responses of the API of flows."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from tailrace.jobs.flows.state import FlowState
from tailrace.web.api.pagination import PageParams
from tailrace.web.api.schemas import In, Out

MAX_FLOWS = 50


class FlowFilter(PageParams):
    """Which flows to list."""

    limit: Annotated[int, Field(ge=1, le=MAX_FLOWS, description="maximum number of items")] = 25
    state: Annotated[
        Literal["running", "paused", "failed"] | None,
        Field(description="`failed`: with failed jobs, also while the flow is under way"),
    ] = None
    name: Annotated[
        str | None,
        Field(
            max_length=200,
            description="a part of the name; a page reads only 10,000 flows, so it may have few or"
            " no items and a next page",
        ),
    ] = None


class FlowOut(Out):
    """A flow. Its state is derived from the states of its jobs."""

    id: int
    name: str
    state: FlowState
    jobs: int
    """The number of its jobs."""
    ended: int
    """The number of its jobs that have ended."""
    counts: dict[str, int]
    """The number of its jobs by state."""
    created_at: datetime
    ended_at: datetime | None
    """When its last job ended; null while jobs are unfinished."""
    deadline_at: datetime | None
    """When its unfinished jobs are cancelled."""
    paused_at: datetime | None
    paused_by: str
    cancelled_at: datetime | None
    cancelled_by: str
    copy_of: int | None
    """The flow that was run again by this one."""


class StepOut(Out):
    """A job of the critical path."""

    job_id: int
    name: str
    state: str
    ready_at: datetime
    """When the job was created, or its last parent had ended."""
    ended_at: datetime
    waited: float
    """Seconds until its last attempt began."""
    ran: float | None
    """Seconds of its last attempt; null: it never began."""


class FlowDetails(FlowOut):
    """A flow with its critical path. `GET /api/jobs?flow=` lists its jobs."""

    critical_path: list[StepOut]
    """The jobs that took the flow's time, in the order of time: before each job comes the parent
    that ended last; at most the last 50 jobs."""
    is_whole: bool
    """False: the flow has more than 20,000 jobs, and the path is that of its first ones."""


class EdgeOut(Out):
    """A job of the flow waits for a parent, which may be outside of the flow."""

    job_id: int
    parent_id: int
    need: Literal["success", "failure", "end"]
    """How the parent must end, so that the job runs: `success`: completed or skipped; `failure`:
    failed or cancelled; `end`: in any way."""


class CancelIn(In):
    """How to cancel a flow."""

    clean_up: bool = True
    """Run the jobs that wait for a failure, or for any end; false: cancel them, too."""


class OperatedFlowOut(Out):
    """The flow after the operation, and what changed."""

    flow: FlowOut
    changed: int
    """Jobs that were cancelled, held back or released, or that run again."""
    stop_requested: int
    """Running jobs, which stop the next time their handlers check for cancellation."""
    refused: dict[str, int]
    """The number of jobs that were not changed, by reason."""


class ReplayFlowIn(In):
    """How to run a flow again."""

    dry_run: bool = False
    """Change nothing; return the plan."""


class ProblemOfJob(Out):
    """Why a job cannot be created again."""

    job_id: int
    name: str
    handler: str
    detail: str
    """Needs the permission `tailrace_jobs.view_job_payload`."""


class ReplayedFlowOut(Out):
    """The new flow; in a dry run, the plan for it."""

    dry_run: bool
    flow_id: int | None
    """The new flow; null in a dry run."""
    jobs: int
    """The number of its jobs."""
    added: int
    """Jobs that other jobs added while they ran. They are left out: those jobs add them again."""
    changed: int
    """Jobs that are given another payload than before, because the code has changed."""
    problems: list[ProblemOfJob]
    """The first 50 jobs that cannot be created. If there are any, the flow cannot run again."""
