"""Run failed, cancelled and skipped jobs again."""

from collections.abc import Sequence

import structlog
from django.db import transaction

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.query import query
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.waking import dependents, wake
from tailrace.jobs.engine.waking.dependents import PAUSED
from tailrace.jobs.handler import NO_LANE
from tailrace.jobs.operations import OperationResult
from tailrace.jobs.operations.row_locks import lock, lock_paused_flows
from tailrace.jobs.operations.undo import RESTORED
from tailrace.jobs.operations.work_out_again import work_out_again
from tailrace.jobs.runtime.states import REPLAYABLE, UNSTARTED, State

log = structlog.get_logger(__name__)

_BEFORE = ", ".join(f"'{name}', j.{name}" for name in (*RESTORED, "claim_no"))

# A job whose parent did not complete waits again, and so does a job that waits for several parents,
# until it is decided (`dependents.decide`). A job is not changed if an unstarted job has its
# unique key. A job from before its handler had lanes gets the lane NO_LANE.
_REPLAY = f"""
WITH chosen AS (
  SELECT DISTINCT ON (j.handler, j.unique_key, CASE WHEN j.unique_key IS NULL THEN j.id END)
    j.id, p.state AS parent, jsonb_build_object({_BEFORE}) AS before
  FROM tailrace_jobs_job j LEFT JOIN tailrace_jobs_job p ON p.id = j.after_id
  WHERE j.id = ANY(%(ids)s) AND j.state IN ('failed', 'cancelled', 'skipped')
    AND (j.unique_key IS NULL OR NOT EXISTS (
      SELECT 1 FROM tailrace_jobs_job k WHERE k.handler = j.handler AND k.unique_key = j.unique_key
        AND k.state IN ('waiting', 'pending')))
),
replayed AS (
UPDATE tailrace_jobs_job j SET
  state = CASE WHEN (c.parent IS NULL OR c.parent IN ('completed', 'skipped'))
          AND (j.flow_id IS NULL OR NOT EXISTS (
            SELECT 1 FROM tailrace_jobs_dependency d WHERE d.job_id = j.id))
          AND NOT {PAUSED.format(job="j")} THEN 'pending' ELSE 'waiting' END,
  lane = CASE WHEN j.lane = '' AND j.handler = ANY(%(laned)s) THEN %(no_lane)s ELSE j.lane END,
  attempt = 0, due_at = {clock.NOW}, finished_at = NULL, started_at = NULL, isolate = false,
  suspect_group = NULL, cancel_requested = false, error = '', result = NULL,
  progress_done = NULL, progress_total = NULL, progress_note = '', done_on = NULL
FROM chosen c WHERE j.id = c.id AND j.state IN ('failed', 'cancelled', 'skipped')
RETURNING j.id, j.handler, j.state, c.before
),
kept AS (
  INSERT INTO tailrace_jobs_replayedjob (replay_id, job_id, before)
  SELECT %(record)s::bigint, id, before FROM replayed WHERE %(record)s::bigint IS NOT NULL
)
SELECT id, handler, state FROM replayed
"""

# Jobs that were cancelled only because this job did not complete wait for it again.
_DEPENDENTS = f"SELECT id FROM tailrace_jobs_job WHERE {dependents.CANCELLED_WITH_PARENT}"


def replay(
    ids: Sequence[int], by: str = "an operator", *, record: int | None = None
) -> OperationResult:
    """Make failed, cancelled or skipped jobs pending again, with all their attempts.

    Jobs that were cancelled because one of these jobs did not complete wait for it again. If a job
    failed because its handler raised an error at fan-out, its handler's jobs for the event are
    created now. `record` is the id of a Replay by which this can be undone. Raises Blocked as
    `row_locks.lock`.
    """
    with transaction.atomic(using=home()):
        lock_paused_flows(ids)
        lock(ids)
        worked_out = work_out_again(ids)
        replayed = list(worked_out.changed)
        again = {*replayed, *worked_out.refused}
        batch = [id for id in ids if id not in again]
        waiting: list[int] = []
        while batch:
            lock_paused_flows(batch)
            lock(batch)
            lanes = {"laned": sync_declared.handlers_with_lanes(), "no_lane": NO_LANE}
            rows = query(_REPLAY, ids=batch, record=record, **lanes)
            ids_of_batch = [id for id, _handler, _state in rows]
            replayed += ids_of_batch
            waiting += [id for id, _handler, state in rows if state == State.WAITING]
            wake.on_commit({handler for _id, handler, state in rows if state == State.PENDING})
            batch = [id for (id,) in query(_DEPENDENTS, ids=ids_of_batch)] if rows else []
        if waiting:
            dependents.decide(waiting)
    known = {*replayed, *worked_out.refused}
    refused = worked_out.refused | _reasons([id for id in ids if id not in known])
    log.info("jobs.replayed", by=by, replayed=len(replayed), refused=len(refused))
    return OperationResult(changed=replayed, refused=refused)


def _reasons(ids: list[int]) -> dict[int, str]:
    states = dict(query("SELECT id, state FROM tailrace_jobs_job WHERE id = ANY(%(ids)s)", ids=ids))
    return {id: _reason(states.get(id)) for id in ids}


def _reason(state: str | None) -> str:
    if state is None:
        return "there is no such job"
    if state in REPLAYABLE:
        return "an unstarted job has the same unique key"
    return "it has not started" if state in UNSTARTED else f"it is {state}"
