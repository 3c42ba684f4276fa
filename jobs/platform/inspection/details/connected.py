"""Jobs that wait, or have waited, for one another by `after`, whether they are in a flow or not."""

from tailrace.db.query import query
from tailrace.db.sql.plans import probe

MAX_JOBS = 1_000
"""Jobs that are read, and steps that are followed up to the first one."""

# UNION ends cycles. Each step is an index probe.
_CONNECTED = f"""
WITH RECURSIVE above AS (
  SELECT id, after_id, 1 AS step FROM tailrace_jobs_job WHERE id = %(job)s
  UNION ALL
  SELECT p.id, p.after_id, above.step + 1
  FROM above JOIN tailrace_jobs_job p ON {probe("p.id", "above.after_id")}
  WHERE above.step < %(limit)s
), connected AS (
  SELECT id FROM (SELECT id FROM above ORDER BY step DESC LIMIT 1) first
  UNION
  SELECT c.id FROM connected JOIN tailrace_jobs_job c
    ON c.after_id IS NOT NULL AND {probe("c.after_id", "connected.id")}
)
SELECT id FROM connected LIMIT %(limit)s
"""


def connected_with(job: int) -> list[int]:
    """Return the ids of the jobs that are connected with this job by `after`: first the job that
    all others wait for, then its dependents, step by step.

    The list has at most MAX_JOBS ids, and is empty if there is no such job.
    """
    return [id for (id,) in query(_CONNECTED, job=job, limit=MAX_JOBS)]
