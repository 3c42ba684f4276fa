"""Undo a replay: restore the jobs that have not started to their state before the replay."""

from typing import Any

import structlog
from django.db import transaction

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.query import execute, query
from tailrace.jobs.engine.waking import dependents
from tailrace.jobs.models import Replay
from tailrace.jobs.operations import OperationResult
from tailrace.jobs.operations.row_locks import lock
from tailrace.jobs.runtime import audit

log = structlog.get_logger(__name__)

RESTORED = (
    "state", "lane", "attempt", "due_at", "finished_at", "started_at", "isolate", "suspect_group",
    "cancel_requested", "error", "result", "progress_done", "progress_total", "progress_note",
)  # fmt: skip
"""The columns that a replay changes and an undo restores."""

_NOT_BEGUN = """
j.state IN ('pending', 'waiting') AND j.claim_no = (r.before->>'claim_no')::int
AND r.before->>'state' IN ('failed', 'cancelled')"""

# A job that was cancelled because its parent did not complete is only restored with its parent.
_UNDO = f"""
WITH RECURSIVE free AS MATERIALIZED (
  SELECT j.id, j.after_id, r.before,
    starts_with(r.before->>'error', '{dependents.WAITED}') AS waited
  FROM tailrace_jobs_replayedjob r JOIN tailrace_jobs_job j ON j.id = r.job_id
  WHERE r.replay_id = %(replay)s AND {_NOT_BEGUN}
),
chosen AS (
  SELECT id, before FROM free WHERE NOT waited
  UNION ALL
  SELECT f.id, f.before FROM free f JOIN chosen c ON f.after_id = c.id WHERE f.waited
),
undone AS (
  UPDATE tailrace_jobs_job j SET {", ".join(f"{name} = b.{name}" for name in RESTORED)}
  FROM chosen c, jsonb_populate_record(NULL::tailrace_jobs_job, c.before) b
  WHERE j.id = c.id AND j.state IN ('pending', 'waiting')
  RETURNING j.id
)
DELETE FROM tailrace_jobs_replayedjob r USING undone
WHERE r.replay_id = %(replay)s AND r.job_id = undone.id RETURNING r.job_id
"""
_IDS = "SELECT job_id FROM tailrace_jobs_replayedjob WHERE replay_id = %(replay)s"
_UNDONE = f"UPDATE tailrace_jobs_replay SET undone_at = {clock.NOW} WHERE id = %(replay)s"
_PROGRESS = f"""
SELECT count(*), count(*) FILTER (WHERE {_NOT_BEGUN})
FROM tailrace_jobs_replayedjob r JOIN tailrace_jobs_job j ON j.id = r.job_id
WHERE r.replay_id = %(replay)s
"""


def progress(replay: Replay) -> tuple[int, int]:
    """Return the number of jobs of the replay, and how many of them have not started."""
    [(jobs, not_begun)] = query(_PROGRESS, replay=replay.pk)
    return jobs, not_begun


def undo(replay: Replay, user: Any) -> OperationResult:
    """Restore the jobs of the replay that have not started; the others are not changed. The audit
    log gets one entry. Raises Blocked as `row_locks.lock`."""
    with transaction.atomic(using=home()):
        Replay.objects.select_for_update().get(pk=replay.pk)
        ids = [id for (id,) in query(_IDS, replay=replay.pk)]
        if ids:
            lock(ids)
        undone = [id for (id,) in query(_UNDO, replay=replay.pk)]
        dependents.release(undone)
        if undone:
            execute(_UNDONE, replay=replay.pk)
            text = f"undid replay {replay.pk} of {len(undone):,} jobs: {replay.what}"
            audit.record(user, Replay, text, [(replay.pk, str(replay))])
    refused = dict.fromkeys(set(ids) - set(undone), "it has already started")
    log.info("jobs.replay_undone", by=user.get_username(), undone=len(undone), begun=len(refused))
    return OperationResult(changed=undone, refused=refused)
