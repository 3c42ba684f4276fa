"""The actions of operators on a flow, with an entry in the audit log."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction

from tailrace.db.engine_database import home
from tailrace.jobs.flows import operations
from tailrace.jobs.flows.new_flow import NewFlow
from tailrace.jobs.flows.operations import RefusedForFlow
from tailrace.jobs.flows.replay import ReplayPlan, replay_flow
from tailrace.jobs.flows.state import FlowState, FlowStatus, status
from tailrace.jobs.models import Flow
from tailrace.jobs.operations import OperationResult
from tailrace.jobs.runtime import audit
from tailrace.jobs.runtime.states import DONE, LIVE

PERMISSION = "tailrace_jobs.change_flow_state"


@dataclass(frozen=True, slots=True)
class FlowAction:
    """An action on a flow in certain states."""

    name: str
    past: str
    title: str
    operation: Callable[..., OperationResult | int]
    """Called with the flow and the name of the user."""
    is_possible: Callable[[FlowStatus], bool]


FLOW_ACTIONS = {
    action.name: action
    for action in (
        FlowAction(
            "pause", "paused", "Pause", operations.pause_flow,
            lambda status: status.state == FlowState.RUNNING,
        ),
        FlowAction(
            "resume", "resumed", "Resume", operations.resume_flow,
            lambda status: status.state == FlowState.PAUSED,
        ),
        FlowAction(
            "retry", "retried", "Retry from the failed jobs on", operations.retry_flow,
            lambda status: bool(status.counts.keys() - {*LIVE, *DONE}),
        ),
        FlowAction(
            "cancel", "cancelled", "Cancel", operations.cancel_flow,
            lambda status: status.is_under_way,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FlowOutcome:
    """What an action changed."""

    changed: int
    """Jobs that were cancelled, held back, released, or that run again."""
    stop_requested: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Jobs that were not changed, by reason."""


def apply(user: Any, flow: Flow, action: FlowAction, **options: Any) -> FlowOutcome:
    """Apply the action to the flow. Raises RefusedForFlow if its state does not allow it, and
    Blocked if another transaction locks a job."""
    now = status(flow)
    if not action.is_possible(now):
        raise RefusedForFlow(f"flow {flow.pk} cannot be {action.past}: it is {now.state.value}")
    past = action.past + ", with the jobs that clean up" * (options.get("clean_up") is False)
    with transaction.atomic(using=home()):
        result = action.operation(flow, user.get_username(), **options)
        audit.record(user, Flow, past, [(flow.pk, str(flow))])
    if isinstance(result, int):
        return FlowOutcome(result)
    refused = Counter(result.refused.values())
    return FlowOutcome(len(result.changed), len(result.stop_requested), refused)


def apply_replay(user: Any, plan: ReplayPlan) -> NewFlow:
    """Run the whole flow again, as a new flow. Raises InvalidJob."""
    flow = plan.flow
    with transaction.atomic(using=home()):
        new = replay_flow(plan, user.get_username())
        audit.record(user, Flow, f"replayed as flow {new.id}", [(flow.pk, str(flow))])
    return new
