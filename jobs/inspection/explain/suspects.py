"""With which other jobs a job is called whose batch has failed as a whole."""

from tailrace.db.query import query
from tailrace.jobs import registry
from tailrace.jobs.engine.claiming import claim_sql as sql
from tailrace.jobs.inspection.explain.reasons import MAX_COUNTED, Reason, job_count
from tailrace.jobs.models import Job
from tailrace.jobs.states import State

# A group goes back to the front of the queue, with the due times that it has had.
_OTHERS = f"""
SELECT count(*) FROM (
  (SELECT id, suspect_group FROM tailrace_jobs_live WHERE handler = %(handler)s AND {sql.PENDING}
   ORDER BY priority, due_at, id LIMIT {MAX_COUNTED})
  UNION ALL
  (SELECT id, suspect_group FROM tailrace_jobs_live WHERE {sql.RUNNING} LIMIT {MAX_COUNTED})
) first
WHERE suspect_group = %(mark)s AND id <> %(id)s
"""


def suspects(job: Job) -> list[Reason]:
    """Return that the job is called alone or in a small group, as a reason to add to the others."""
    handler = registry.find(job.handler)
    if job.suspect_group is None or handler is None or not handler.in_batches():
        return []
    [(others,)] = query(_OTHERS, handler=job.handler, mark=job.suspect_group, id=job.pk)
    calls = "was called" if job.state == State.RUNNING else "is called"
    company = f"together with {job_count(others)} of it" if others else "alone"
    words = (
        "A batch with this job failed as a whole. To find the job that makes it fail, this one "
        f"{calls} {company}."
    )
    return [Reason("suspect", words)]
