"""Cancel unstarted jobs, and request running jobs to stop."""

from collections.abc import Sequence

import structlog
from django.db import transaction

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.query import query
from tailrace.jobs.engine.waking import dependents
from tailrace.jobs.operations import OperationResult
from tailrace.jobs.operations.row_locks import lock

log = structlog.get_logger(__name__)

_CANCEL = f"""
UPDATE tailrace_jobs_live SET
  state = CASE state WHEN 'running' THEN state ELSE 'cancelled' END,
  cancel_requested = true,
  error = CASE state WHEN 'running' THEN error ELSE %(reason)s END,
  finished_at = CASE state WHEN 'running' THEN finished_at ELSE {clock.NOW} END
WHERE id = ANY(%(ids)s) AND (state IN ('waiting', 'pending') OR %(running)s AND state = 'running')
RETURNING id, state
"""


def cancel(
    ids: Sequence[int], by: str = "an operator", reason: str = "", *, running: bool = True
) -> OperationResult:
    """Cancel unstarted jobs at once. If `running`, running jobs stop at their next
    `job.check_cancelled()`; else they are not changed. The error of a cancelled job is `reason`, or
    "cancelled by" and `by`. Raises Blocked as `row_locks.lock`."""
    with transaction.atomic(using=home()):
        lock(ids)
        reason = reason or f"cancelled by {by}"
        states = dict(query(_CANCEL, ids=list(ids), reason=reason, running=running))
        cancelled = [id for id, state in states.items() if state == "cancelled"]
        dependents.release(cancelled)
    refusal = "it is already finished" if running else "it has already started"
    result = OperationResult(
        changed=cancelled,
        stop_requested=[id for id, state in states.items() if state == "running"],
        refused={id: refusal for id in ids if id not in states},
    )
    log.info("jobs.cancelled", by=by, cancelled=len(cancelled), stopping=len(result.stop_requested))
    return result
