"""Fail the pending jobs whose handler was removed."""

import structlog

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.failures.fill_in import group_or_leave
from tailrace.jobs.engine.maintenance.sweeping.row_invariant import OLD
from tailrace.jobs.engine.waking import dependents

log = structlog.get_logger(__name__)

# A queue is retired when code without its handler migrates. A queue without a row belongs to newer
# code that has not migrated yet: its jobs wait. For a short time after a handler was removed, old
# workers may still run its jobs. Each handler name is found by one index probe.
_WITHOUT_HANDLER = f"""
WITH RECURSIVE names (handler) AS (
  (SELECT handler FROM tailrace_jobs_live WHERE state = 'pending' ORDER BY handler LIMIT 1)
  UNION ALL
  SELECT (SELECT j.handler FROM tailrace_jobs_live j WHERE j.state = 'pending'
            AND j.handler > names.handler ORDER BY j.handler LIMIT 1)
  FROM names WHERE names.handler IS NOT NULL
)
SELECT job.id FROM names JOIN tailrace_jobs_queue q ON q.name = names.handler, LATERAL (
  SELECT id FROM tailrace_jobs_live WHERE handler = names.handler AND state = 'pending'
  ORDER BY priority, due_at, id LIMIT %(limit)s
) job
WHERE split_part(names.handler, '@', 1) <> ALL(%(known)s) AND q.retired_at < {OLD}
LIMIT %(limit)s
"""

_FAIL = f"""
UPDATE tailrace_jobs_live SET state = 'failed', finished_at = {clock.NOW},
  error = 'no handler is called ' || handler
    || '; it was removed or renamed: deploy a handler of that name and replay the job'
WHERE id IN (
  SELECT id FROM tailrace_jobs_live WHERE id = ANY(%(ids)s) AND state = 'pending'
  ORDER BY id FOR UPDATE SKIP LOCKED)
RETURNING id
"""


def find(limit: int = 1000) -> list[int]:
    """Return the ids of pending jobs whose handler was removed two minutes ago or earlier."""
    known = list(registry.all_handlers())
    return [id for (id,) in query(_WITHOUT_HANDLER, limit=limit, known=known)]


def fail(ids: list[int]) -> int:
    """Move these pending jobs to `failed`; return how many were moved."""
    failed = [id for (id,) in query(_FAIL, ids=ids)]
    dependents.release(failed)
    group_or_leave(failed)
    if failed:
        log.error("job.failed", jobs=failed[:100], count=len(failed), error="no such handler")
    return len(failed)
