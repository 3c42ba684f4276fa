"""The flow of a job: the jobs that wait, or have waited, for one another."""

from tailrace.db.query import query
from tailrace.db.sql.plans import probe

MAX_JOBS = 1_000
"""Jobs of a flow that are read, and steps that are followed up to its first job."""

# UNION ends cycles. Each step is an index probe.
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
    """Return the ids of the jobs of this job's flow, connected by `after`: first the job that all
    others wait for, then its dependents, step by step.

    The list has at most MAX_JOBS ids, and is empty if there is no such job.
    """
    return [id for (id,) in query(_FLOW, job=job, limit=MAX_JOBS)]
