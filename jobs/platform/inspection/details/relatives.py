"""The jobs that a job waits for, and the jobs that wait for it."""

from dataclasses import dataclass

from django.contrib.auth.models import User

from tailrace.db.query import query
from tailrace.jobs.models import Job, Need
from tailrace.jobs.platform.inspection.display.formatting import state_label
from tailrace.jobs.platform.inspection.visibility import HIDDEN, hidden_jobs

MOST = 50


@dataclass(frozen=True, slots=True)
class Relative:
    job: Job
    need: str
    """How the parent must end, so that the child runs."""

    @property
    def label(self) -> str:
        return state_label(self.job)

    @property
    def need_label(self) -> str:
        return NEED_LABELS[Need(self.need)]


NEED_LABELS = {Need.SUCCESS: "success", Need.FAILURE: "runs after a failure", Need.END: "any end"}


@dataclass(frozen=True, slots=True)
class Relatives:
    jobs: list[Relative]
    more: bool


_PARENTS = """
SELECT parent_id, need FROM tailrace_jobs_dependency WHERE job_id = %(job)s
ORDER BY position, parent_id LIMIT %(limit)s
"""
# The jobs of a flow with one parent have no row, and jobs outside of flows have none at all.
_CHILDREN = """
(SELECT job_id, need FROM tailrace_jobs_dependency WHERE parent_id = %(job)s LIMIT %(limit)s)
UNION ALL
(SELECT id, 'success' FROM tailrace_jobs_job j WHERE after_id = %(job)s AND after_id IS NOT NULL
   AND (flow_id IS NOT NULL OR state = 'waiting')
   AND NOT EXISTS (SELECT 1 FROM tailrace_jobs_dependency d WHERE d.job_id = j.id)
 LIMIT %(limit)s)
ORDER BY 1 LIMIT %(limit)s
"""


def parents(user: User, job: Job) -> Relatives:
    """Return the first parents of a job of a flow. A job outside of flows has one parent at most,
    which its page names: so the list is empty."""
    if job.flow_id is None:
        return Relatives([], False)
    rows = query(_PARENTS, job=job.pk, limit=MOST + 1)
    if not rows and job.after_id is not None:
        rows = [(job.after_id, Need.SUCCESS.value)]
    return _relatives(user, rows)


def children(user: User, job: Job) -> Relatives:
    """Return the first jobs that wait for this job; in a flow, also the jobs that waited for it."""
    return _relatives(user, query(_CHILDREN, job=job.pk, limit=MOST + 1))


def _relatives(user: User, rows: list[tuple[int, str]]) -> Relatives:
    needs = dict(rows[:MOST])
    columns = ("id", "handler", "state", "due_at", "attempt", "event_id", "flow_name")
    jobs = Job.objects.only(*columns).in_bulk(list(needs))
    hidden = hidden_jobs(user, list(jobs.values()))
    for id in hidden:
        jobs[id].flow_name = HIDDEN if jobs[id].flow_name else None
    shown = [Relative(jobs[id], need) for id, need in needs.items() if id in jobs]
    return Relatives(shown, len(rows) > MOST)
