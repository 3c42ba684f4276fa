"""Cancel, pause, resume, retry and replay a flow, as operators do in the admin."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Body, Router, Status

from tailrace.db.locks import Blocked
from tailrace.jobs.enqueue import InvalidJob
from tailrace.jobs.flows import actions
from tailrace.jobs.flows.operations import RefusedForFlow
from tailrace.jobs.flows.replay import ReplayPlan, plan_replay
from tailrace.jobs.models import Flow
from tailrace.jobs.platform.inspection.visibility import HIDDEN, VIEW_JOB_PAYLOAD, hidden_ids
from tailrace.web.api.auth import Caller, Needs, caller
from tailrace.web.api.jobs.flows.flows import VIEW, shown
from tailrace.web.api.jobs.flows.schemas import (
    CancelIn,
    OperatedFlowOut,
    ProblemOfJob,
    ReplayedFlowOut,
    ReplayFlowIn,
)
from tailrace.web.api.problems import Problem, busy, find_row

router = Router()
OPERATE = Needs("jobs:operate", *VIEW, actions.PERMISSION, cost=5)
MAX_PROBLEMS = 50


@router.post("/{int:id}/cancel", auth=OPERATE, response=OperatedFlowOut, summary="Cancel a flow")
def cancel_flow(request: HttpRequest, id: int, body: Body[CancelIn]) -> OperatedFlowOut:
    """Jobs that have not started are cancelled. Running jobs stop the next time their handlers
    check for cancellation."""
    return _apply(request, id, "cancel", clean_up=body.clean_up)


@router.post("/{int:id}/pause", auth=OPERATE, response=OperatedFlowOut, summary="Pause a flow")
def pause_flow(request: HttpRequest, id: int) -> OperatedFlowOut:
    """No further job of the flow begins; running jobs continue."""
    return _apply(request, id, "pause")


@router.post("/{int:id}/resume", auth=OPERATE, response=OperatedFlowOut, summary="Resume a flow")
def resume_flow(request: HttpRequest, id: int) -> OperatedFlowOut:
    """Let the jobs of a paused flow begin."""
    return _apply(request, id, "resume")


@router.post("/{int:id}/retry", auth=OPERATE, response=OperatedFlowOut, summary="Retry a flow")
def retry_flow(request: HttpRequest, id: int) -> OperatedFlowOut:
    """Run the failed and the cancelled jobs again, with the jobs that waited for them. Completed
    jobs stay as they are."""
    return _apply(request, id, "retry")


@router.post(
    "/{int:id}/replay",
    auth=OPERATE,
    response={200: ReplayedFlowOut, 201: ReplayedFlowOut},
    summary="Run a flow again",
)
def replay_flow(
    request: HttpRequest, response: HttpResponse, id: int, body: Body[ReplayFlowIn]
) -> Status[ReplayedFlowOut]:
    """Create a new flow with the jobs of this flow, their payloads and their dependencies. This
    flow is unchanged. With `dry_run`, nothing is created."""
    flow, user = find_row(Flow.objects.all(), id, "flow"), caller(request)
    plan = plan_replay(flow)
    if body.dry_run:
        return Status(200, _planned(user, plan))
    if plan.problems:
        detail = f"{len(plan.problems):,} of the jobs cannot be created; dry_run returns which"
        raise Problem(409, f"flow {id} cannot run again: {detail}")
    try:
        new = actions.apply_replay(user.user, plan)
    except InvalidJob:  # it may quote a payload
        raise Problem(409, f"flow {id} cannot run again: a job cannot be created") from None
    except Blocked as error:
        raise busy(error, seconds=2) from None
    response["Location"] = f"/api/flows/{new.id}"
    return Status(201, _planned(user, plan, new.id))


def _planned(user: Caller, plan: ReplayPlan, new: int | None = None) -> ReplayedFlowOut:
    problems = plan.problems[:MAX_PROBLEMS]
    hidden = hidden_ids(user.user, (job.id for job in problems))
    sees_payload = user.may(VIEW_JOB_PAYLOAD)
    return ReplayedFlowOut(
        dry_run=new is None,
        flow_id=new,
        jobs=len(plan.jobs),
        added=plan.added,
        changed=len(plan.changed),
        problems=[
            ProblemOfJob(
                job_id=job.id,
                name=HIDDEN if job.id in hidden else job.name,
                handler=job.handler,
                detail=job.problem if sees_payload and job.id not in hidden else "",
            )
            for job in problems
        ],
    )


def _apply(request: HttpRequest, id: int, name: str, **options: Any) -> OperatedFlowOut:
    flow = find_row(Flow.objects.all(), id, "flow")
    try:
        outcome = actions.apply(caller(request).user, flow, actions.FLOW_ACTIONS[name], **options)
    except RefusedForFlow as error:
        raise Problem(409, str(error)) from None
    except Blocked as error:
        raise busy(error, seconds=2) from None
    [now] = shown([flow])
    return OperatedFlowOut(
        flow=now,
        changed=outcome.changed,
        stop_requested=outcome.stop_requested,
        refused=dict(outcome.refused),
    )
