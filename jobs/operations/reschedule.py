"""Change the due time and the priority of a pending job."""

from datetime import datetime
from typing import Any

import structlog
from django.core.exceptions import PermissionDenied
from django.db import transaction

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.query import query
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.models import Job
from tailrace.jobs.operations import batches
from tailrace.jobs.operations.row_locks import lock
from tailrace.jobs.runtime import audit

log = structlog.get_logger(__name__)

# The row is changed only while the job is pending: a concurrent claim wins.
_RESCHEDULE = f"""
UPDATE tailrace_jobs_live
SET due_at = coalesce(%(due_at)s, due_at), priority = coalesce(%(priority)s, priority)
WHERE id = %(id)s AND state = 'pending'
RETURNING handler, priority, due_at, due_at <= {clock.NOW}
"""


def reschedule(
    user: Any, id: int, due_at: datetime | None = None, priority: int | None = None
) -> bool:
    """Change the due time and the priority of a pending job; None leaves a value unchanged. Return
    False if the job is not pending. The audit log gets the new values. Raises PermissionDenied, or
    Blocked as `row_locks.lock`."""
    if not user.has_perm(batches.PERMISSION):
        raise PermissionDenied(f"you need the permission {batches.PERMISSION}")
    with transaction.atomic(using=home()):
        lock([id])
        rows = query(_RESCHEDULE, id=id, due_at=due_at, priority=priority)
        for handler, new_priority, new_due_at, is_due in rows:
            values = f"due {new_due_at:%Y-%m-%d %H:%M:%S} UTC, priority {new_priority}"
            audit.record(user, Job, f"rescheduled: {values}", [(id, f"{handler} {id}")])
            if is_due:
                wake.on_commit({handler})
    log.info("jobs.rescheduled", by=user.get_username(), job=id, changed=bool(rows))
    return bool(rows)
