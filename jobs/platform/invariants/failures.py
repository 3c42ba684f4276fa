"""Failures: each failed job is in a failure group, so that the page of failures shows it."""

from tailrace.db.query import query
from tailrace.jobs.engine.failures.fill_in import group
from tailrace.jobs.maintenance.invariant import Invariant
from tailrace.jobs.maintenance.sweeping.row_invariant import OLD

_UNGROUPED = f"""
SELECT id FROM tailrace_jobs_job
WHERE state = 'failed' AND failure_group_id IS NULL AND finished_at < {OLD}
ORDER BY failure_group_id, id LIMIT %(limit)s
"""


class FailedHasGroup(Invariant):
    """A failed job belongs to a failure group."""

    name = "jobs.failed_without_group"
    advice = "the job is added to the group of its last error"
    repaired_by = group

    def find(self) -> list[int]:
        return [id for (id,) in query(_UNGROUPED, limit=self.limit)]
