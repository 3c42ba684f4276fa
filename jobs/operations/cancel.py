"""Cancel unstarted jobs, and request running jobs to stop."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import structlog
from django.db import transaction

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.query import query
from tailrace.db.sql.arrays import text_array
from tailrace.jobs.engine import registry
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


BATCH = 1000
# The lane of a job is part of an index, so jobs with a lane are found among thousands of others.
_PENDING = """
SELECT j.id FROM unnest(%(handlers)s::text[], %(lanes)s::text[], %(payloads)s::text[])
    AS wanted (handler, lane, payload)
  JOIN tailrace_jobs_live j ON j.handler = wanted.handler AND j.state = 'pending' AND {lane}
    AND j.payload @> wanted.payload::jsonb
LIMIT %(batch)s
"""
_WITH_LANE = "j.lane <> '' AND j.lane = wanted.lane"
_WITHOUT_LANE = "wanted.lane = ''"


def cancel_pending(jobs: Sequence[tuple[str, Mapping[str, Any]]], reason: str) -> int:
    """Cancel the pending jobs of these handlers whose payloads have these values, whoever created
    them; return their number. Each pair is a handler's name and values. The values have to decide
    the lane of the handler's jobs, if the handler has lanes."""
    wanted = [(handler, _lane(handler, values), json.dumps(values)) for handler, values in jobs]
    columns = zip(*wanted, strict=True)
    params = dict(zip(("handlers", "lanes", "payloads"), map(text_array, columns), strict=True))
    cancelled = 0
    for lane in (_WITH_LANE, _WITHOUT_LANE) if wanted else ():
        statement = _PENDING.format(lane=lane)
        while rows := query(statement, **params, batch=BATCH):
            ids = [id for (id,) in rows]
            changed = cancel(ids, by="cancel_pending", reason=reason, running=False).changed
            cancelled += len(changed)
            if not changed:  # they have begun since
                break
    return cancelled


def _lane(handler: str, values: Mapping[str, Any]) -> str:
    """Return the lane of the handler's jobs with these values; "" if there are no lanes, or the
    process does not know the handler."""
    known = registry.find(handler)
    return known.lane_without_event(json.dumps(values)) if known else ""
