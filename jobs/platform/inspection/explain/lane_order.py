"""The jobs that a job of an ordered handler waits for in its lane."""

from tailrace.db.query import query
from tailrace.jobs.engine.claiming import claim_sql as sql
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.explain.reasons import Reason

_LANE = "(SELECT %(lane)s::text AS lane) lanes"
_RUNNING = f"""
SELECT job.* FROM {_LANE}, LATERAL (
  SELECT id, worker, lease_until FROM tailrace_jobs_live WHERE {sql.LANE_BUSY}) job
"""
_HEAD = f"""
SELECT head.* FROM {_LANE}, LATERAL (
  SELECT id, due_at, {sql.DUE} FROM tailrace_jobs_live WHERE {sql.LANE_HEAD}) head
"""


def lane_reasons(job: Job) -> list[Reason]:
    """Return a reason for the running job of its lane and for the first pending job, if any."""
    reasons = []
    for id, worker, lease_until in query(_RUNNING, handler=job.handler, lane=job.lane):
        words = (
            f"Lane {job.lane} runs one job at a time, and job {id} is running on {worker}, "
            f"with a lease until {when(lease_until)}."
        )
        reasons.append(Reason("lane_busy", words, (id,)))
    for id, due_at, due in query(_HEAD, handler=job.handler, lane=job.lane):
        if id != job.pk:
            later = "" if due else f", which is due at {when(due_at)}"
            words = f"Lane {job.lane} runs its jobs in order, and job {id} comes first{later}."
            reasons.append(Reason("lane_order", words, (id,)))
    return reasons
