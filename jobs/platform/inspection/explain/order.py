"""The jobs that are claimed before a pending job."""

from tailrace.db.query import query
from tailrace.jobs.engine.claiming import claim_sql as sql
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.display.formatting import when
from tailrace.jobs.platform.inspection.explain.reasons import MAX_COUNTED, Reason


def _earlier(lane: str) -> str:
    """Return a statement that counts earlier jobs; `lane` is an SQL condition or empty.

    It reads one index range for each more urgent priority and one for the job's own. Each range is
    in the order of the index; otherwise the planner may read the whole table.
    """
    due = f"handler = %(handler)s AND {sql.PENDING} AND {lane}{sql.DUE}"
    return f"""
SELECT count(*) FROM (
  SELECT 1 FROM (
    SELECT 1 FROM (VALUES {sql.PRIORITIES}) p (priority), LATERAL (
      SELECT 1 FROM tailrace_jobs_live WHERE {due} AND priority = p.priority
      ORDER BY due_at, id LIMIT {MAX_COUNTED}) due
    WHERE p.priority < %(priority)s
  ) urgent
  UNION ALL
  (SELECT 1 FROM tailrace_jobs_live WHERE {due} AND priority = %(priority)s
     AND (due_at, id) < (%(due_at)s, %(id)s) ORDER BY due_at, id LIMIT {MAX_COUNTED})
  LIMIT {MAX_COUNTED}
) earlier"""


_PLAIN = _earlier("")
_FAIR = _earlier(f"lane = %(lane)s AND {sql.IN_LANE} AND ")
_ORDERED = f"""
SELECT count(*) FROM (SELECT 1 FROM tailrace_jobs_live WHERE handler = %(handler)s AND {sql.PENDING}
  AND lane = %(lane)s AND {sql.IN_LANE} AND id < %(id)s
  ORDER BY id LIMIT {MAX_COUNTED}) earlier"""


def jobs_before(job: Job, handler: Handler) -> int:
    """Return how many jobs are claimed before this job, at most MAX_COUNTED: jobs of its lane if
    the queue has lanes, else jobs of its queue."""
    statement = _ORDERED if handler.ordered else _FAIR if handler.fair else _PLAIN
    rows = query(
        statement, handler=job.handler, lane=job.lane, id=job.pk, priority=job.priority,
        due_at=job.due_at,
    )  # fmt: skip
    return int(rows[0][0])


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
