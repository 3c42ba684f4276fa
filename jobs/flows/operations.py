"""What operators do with a flow: cancel, pause, resume and retry it. Each returns an
OperationResult, as the operations on jobs do."""

from collections.abc import Callable, Sequence

import structlog
from django.db import transaction

from tailrace.db import clock, locks
from tailrace.db.engine_database import home
from tailrace.db.query import query
from tailrace.jobs.engine.waking import dependents
from tailrace.jobs.flows.hold import hold
from tailrace.jobs.models import Flow
from tailrace.jobs.operations import OperationResult
from tailrace.jobs.operations.cancel import cancel
from tailrace.jobs.operations.replay import replay

log = structlog.get_logger(__name__)

BATCH = 2_000
"""Jobs per statement."""
OVERDUE = "the deadline of its flow has passed"
"""The error of a job that was cancelled for this reason."""


class RefusedForFlow(ValueError):
    """The operation is not possible in the state of the flow."""


# A job that waits for a failure, or for any end, cleans up: it runs after the others are cancelled.
# Children come before their parents, so that each gets the reason of the flow.
_CANCELLED_WITH_FLOW = """
SELECT j.id FROM tailrace_jobs_live j
WHERE j.flow_id = %(flow)s AND j.state IN ('waiting', 'pending', 'running') AND (
  NOT %(clean_up)s OR NOT EXISTS (
    SELECT 1 FROM tailrace_jobs_dependency d WHERE d.job_id = j.id AND d.need <> 'success'))
ORDER BY j.id DESC
"""
_HAS_ENDED = """
SELECT NOT EXISTS (SELECT 1 FROM tailrace_jobs_live
  WHERE flow_id = %(flow)s AND state IN ('waiting', 'pending', 'running'))
"""
_WAITING = """
SELECT id FROM tailrace_jobs_live WHERE flow_id = %(flow)s AND state = 'waiting' ORDER BY id
"""
_REPLAYABLE = """
SELECT id FROM tailrace_jobs_job
WHERE flow_id = %(flow)s AND state IN ('failed', 'cancelled') ORDER BY id
"""
_CHANGE = f"""
WITH {locks.LIMITED},
changed AS (
  UPDATE tailrace_jobs_flow f SET {{change}} FROM limited WHERE f.id = %(flow)s RETURNING f.id
), {locks.restored("changed")}
SELECT changed.id FROM restored, changed
"""


def cancel_flow(flow: Flow, by: str, *, clean_up: bool = True) -> OperationResult:
    """Cancel the unstarted jobs of a flow at once; running jobs stop as `cancel` describes. Jobs
    that wait for a failure, or for any end, run when the others have ended, unless `clean_up` is
    False. Raises Blocked if another transaction locks a job for more than ten seconds."""
    with transaction.atomic(using=home()):
        _change(flow, f"cancelled_at = {clock.NOW}, cancelled_by = %(by)s", by=by)
        result = cancel_jobs(flow, by=by, clean_up=clean_up)
        if flow.paused_at is not None:
            _resume(flow)
    log.info("flows.cancelled", flow=flow.pk, by=by, cancelled=len(result.changed))
    return result


def end_overdue(flow: Flow) -> OperationResult:
    """Record whether the flow met its deadline, which has passed; cancel its unfinished jobs."""
    with transaction.atomic(using=home()):
        [(met,)] = query(_HAS_ENDED, flow=flow.pk)
        _change(flow, "deadline_met = %(met)s", met=met)
        result = cancel_jobs(flow, reason=OVERDUE)
        if not met and flow.paused_at is not None:
            _resume(flow)
    return result


def cancel_jobs(
    flow: Flow, by: str = "", reason: str = "", *, clean_up: bool = True
) -> OperationResult:
    ids = [id for (id,) in query(_CANCELLED_WITH_FLOW, flow=flow.pk, clean_up=clean_up)]
    reason = reason or f"cancelled by {by} with its flow"
    return _in_batches(ids, lambda batch: cancel(batch, by, reason))


def pause_flow(flow: Flow, by: str) -> int:
    """Let no further job of the flow begin; running jobs continue. Return the number of jobs that
    are held back."""
    with transaction.atomic(using=home()):
        _change(flow, f"paused_at = coalesce(f.paused_at, {clock.NOW}), paused_by = %(by)s", by=by)
        held = hold(flow.pk)
    log.info("flows.paused", flow=flow.pk, by=by, held=held)
    return held


def resume_flow(flow: Flow, by: str) -> int:
    """Let the jobs of a paused flow begin. Return the number of jobs that waited only because of
    the pause."""
    with transaction.atomic(using=home()):
        released = _resume(flow)
    log.info("flows.resumed", flow=flow.pk, by=by, released=released)
    return released


def _resume(flow: Flow) -> int:
    _change(flow, "paused_at = NULL, paused_by = ''")
    return dependents.decide([id for (id,) in query(_WAITING, flow=flow.pk)])


def retry_flow(flow: Flow, by: str) -> OperationResult:
    """Run the failed and the cancelled jobs of a flow again, with the jobs that waited for them.
    Completed jobs stay as they are. A deadline that has passed no longer counts. Raises Blocked as
    `cancel_flow`."""
    with transaction.atomic(using=home()):
        _change(
            flow,
            "cancelled_at = NULL, cancelled_by = '',"
            " deadline_at = CASE WHEN f.deadline_met IS NULL THEN f.deadline_at END,"
            " deadline_met = NULL",
        )
        ids = [id for (id,) in query(_REPLAYABLE, flow=flow.pk)]
        result = _in_batches(ids, lambda batch: replay(batch, by))
    log.info("flows.retried", flow=flow.pk, by=by, retried=len(result.changed))
    return result


def _change(flow: Flow, change: str, **params: object) -> None:
    with locks.named(lambda: f"flow {flow.pk}"):
        rows = query(_CHANGE.format(change=change), flow=flow.pk, **locks.params(), **params)
    if not rows:
        raise RefusedForFlow(f"there is no flow {flow.pk}: it was pruned")
    flow.refresh_from_db()


def _in_batches(
    ids: Sequence[int], work: Callable[[Sequence[int]], OperationResult]
) -> OperationResult:
    total = OperationResult()
    for start in range(0, len(ids), BATCH):
        result = work(ids[start : start + BATCH])
        total.changed += result.changed
        total.stop_requested += result.stop_requested
        total.refused |= result.refused
    for id in total.changed:  # it was changed with a job of an earlier batch
        total.refused.pop(id, None)
    return total
