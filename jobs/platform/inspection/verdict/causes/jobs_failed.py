from datetime import datetime

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.platform.inspection.display.formatting import count, when
from tailrace.jobs.platform.inspection.verdict.cause import Cause, Check, Facts, admin_link

RECENT_SECONDS = 3600
MAX_COUNTED = 100
"""The number of newest failed jobs of a queue that are read."""
MAX_NAMED = 5

_FAILED = f"""
SELECT name, failed, id, at, attempt, (
  SELECT error_class FROM tailrace_jobs_attempt WHERE job_id = recent.id ORDER BY claim_no DESC
    LIMIT 1)
FROM (
  SELECT q.name, count(*) AS failed, max(job.finished_at) AS at,
    (array_agg(job.id ORDER BY job.finished_at DESC))[1] AS id,
    (array_agg(job.attempt ORDER BY job.finished_at DESC))[1] AS attempt
  FROM tailrace_jobs_queue q CROSS JOIN LATERAL (
    SELECT id, attempt, finished_at, failure_group_id
    FROM tailrace_jobs_live WHERE handler = q.name AND state = 'failed'
    ORDER BY id DESC LIMIT {MAX_COUNTED}) job
  WHERE job.finished_at > {clock.NOW} - make_interval(secs => {RECENT_SECONDS})
    AND NOT EXISTS (SELECT 1 FROM tailrace_jobs_failuregroup g
      WHERE g.id = job.failure_group_id AND g.silenced_until > {clock.NOW})
  GROUP BY q.name
) recent ORDER BY failed DESC, name LIMIT {MAX_NAMED}
"""


class JobsFailed(Check):
    """Queues with jobs that failed permanently in the last hour, except silenced failures."""

    code = "jobs_failed"
    rank = 80

    def causes(self, facts: Facts) -> list[Cause]:
        return [_cause(*row) for row in query(_FAILED)]


def _cause(name: str, failed: int, id: int, at: datetime, attempt: int, error: str | None) -> Cause:
    of = f" with {error}" if error else ""
    return Cause(
        f"{count(failed, 'job', MAX_COUNTED)} of {name} failed permanently in the last hour. The"
        f" last is job {id}, after {count(attempt, 'attempt')}{of}, at {when(at)}.",
        subject=name,
        since=at,
        advice="Fix the error, then replay the job.",
        link=admin_link(f"Job {id}", "job_change", id),
    )
