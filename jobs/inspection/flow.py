"""The flow of a job: the jobs that wait, or have waited, for one another."""

from tailrace.db.plans import probe
from tailrace.db.query import query

MAX_JOBS = 1_000
"""Of a flow that are looked at, and steps from a job up to the first one."""

# UNION lets circles end. Each step is an index probe.
_FLOW = f"""
WITH RECURSIVE above AS (
  SELECT id, after_id, 1 AS step FROM tailrace_jobs_job WHERE id = %(job)s
  UNION ALL
  SELECT p.id, p.after_id, above.step + 1
  FROM above JOIN tailrace_jobs_job p ON {probe("p.id", "above.after_id")}
  WHERE above.step < %(limit)s
), flow AS (
  SELECT id FROM (SELECT id FROM above ORDER BY step DESC LIMIT 1) first
  UNION
  SELECT c.id FROM flow JOIN tailrace_jobs_job c
    ON c.after_id IS NOT NULL AND {probe("c.after_id", "flow.id")}
)
SELECT id FROM flow LIMIT %(limit)s
"""


def flow_of(job: int) -> list[int]:
    """Return the ids of the jobs connected with this one by `after`, itself included: the job that
    all of them wait for, then what waits for it, step by step. At most MAX_JOBS; none if there is
    no such job."""
    return [id for (id,) in query(_FLOW, job=job, limit=MAX_JOBS)]
