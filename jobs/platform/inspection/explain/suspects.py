"""Explain how a job is called again after its whole batch failed."""

from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import claim_sql as sql
from tailrace.jobs.models import Job
from tailrace.jobs.models.states import State
from tailrace.jobs.platform.inspection.explain.reasons import MAX_COUNTED, Reason, job_count

# Jobs of a suspect group keep their due times, so they are at the front of the queue again.
_OTHER_SUSPECTS = f"""
SELECT count(*) FROM (
  (SELECT id, suspect_group FROM tailrace_jobs_live WHERE handler = %(handler)s AND {sql.PENDING}
   ORDER BY priority, due_at, id LIMIT {MAX_COUNTED})
  UNION ALL
  (SELECT id, suspect_group FROM tailrace_jobs_live WHERE {sql.RUNNING} LIMIT {MAX_COUNTED})
) first
WHERE suspect_group = %(mark)s AND id <> %(id)s
"""


def suspects(job: Job) -> list[Reason]:
    """Return a reason if the job is called on its own or in a small group, else an empty list."""
    handler = registry.find(job.handler)
    if job.suspect_group is None or handler is None or not handler.in_batches():
        return []
    [(others,)] = query(_OTHER_SUSPECTS, handler=job.handler, mark=job.suspect_group, id=job.pk)
    calls = "was called" if job.state == State.RUNNING else "is called"
    group = f"together with {job_count(others)} of the batch" if others else "on its own"
    words = (
        "A batch with this job failed as a whole. To find the job that makes the batch fail, this "
        f"job {calls} {group}."
    )
    return [Reason("suspect", words)]
