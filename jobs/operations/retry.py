"""Make pending jobs that are scheduled for later due now."""

from collections.abc import Sequence

import structlog
from django.db import transaction

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.query import query
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.operations import OperationResult

log = structlog.get_logger(__name__)

# Handlers call this to release jobs that wait for a destination, after they have sent to it: at
# that point they must not fail or wait because of a lock.
_RETRY_NOW = f"""
UPDATE tailrace_jobs_live j SET due_at = {clock.NOW}
FROM (
  SELECT id FROM tailrace_jobs_live
  WHERE id = ANY(%(ids)s) AND state = 'pending' AND due_at > {clock.NOW}
  ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
) free
WHERE j.id = free.id RETURNING j.id, j.handler
"""


def retry_now(ids: Sequence[int], by: str = "an operator") -> OperationResult:
    """Make pending jobs that are scheduled for later due now; locked jobs are skipped."""
    with transaction.atomic(using=home()):
        handlers = dict(query(_RETRY_NOW, ids=list(ids)))
        wake.on_commit(set(handlers.values()))
    log.info("jobs.retried", by=by, retried=len(handlers))
    reason = "it is not scheduled for later, or another transaction has locked it"
    refused = {id: reason for id in ids if id not in handlers}
    return OperationResult(changed=list(handlers), refused=refused)
