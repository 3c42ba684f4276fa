"""Waiting jobs: each waits for a job that exists, is older and is not finished."""

from collections.abc import Sequence

from tailrace.db import clock
from tailrace.jobs.engine.maintenance.sweeping.row_invariant import RowInvariant
from tailrace.jobs.engine.waking import dependents
from tailrace.jobs.engine.waking.dependents import PAUSED
from tailrace.jobs.models import Job
from tailrace.jobs.operations.cancel import cancel


class ParentIsUnfinished(RowInvariant):
    """A waiting job waits for a job that is not finished."""

    name = "jobs.waits_for_finished"
    every = 15
    # The worker of the other job releases it within milliseconds, unless that worker was lost. A
    # scalar subquery is an index probe per row; an EXISTS would be hashed from the whole table.
    condition = f"""r.state = 'waiting' AND r.after_id IS NOT NULL AND (
      SELECT p.state IN ('completed', 'skipped', 'cancelled', 'failed')
        AND coalesce(p.finished_at, '-infinity') < {clock.NOW} - interval '10 seconds'
      FROM tailrace_jobs_job p WHERE p.id = r.after_id) AND NOT {PAUSED.format(job="r")}"""
    advice = "the job becomes pending or is cancelled, depending on how the other job ended"

    def repair(self, violations: Sequence[int]) -> int:
        parents = Job.objects.filter(pk__in=violations).values_list("after_id", flat=True)
        return dependents.release(sorted({parent for parent in parents if parent is not None}))


class ParentExists(RowInvariant):
    """The job that a waiting job waits for exists."""

    name = "jobs.waits_for_missing"
    every = 300
    condition = """r.state = 'waiting' AND r.after_id IS NOT NULL
      AND (SELECT 1 FROM tailrace_jobs_job p WHERE p.id = r.after_id) IS NULL"""
    advice = "the job is cancelled, because it is unknown how the other job ended"

    def repair(self, violations: Sequence[int]) -> int:
        reason = "the job that it waited for was deleted"
        return len(cancel(self.lock(violations), by="the sweeper", reason=reason).changed)


class ParentIsSet(RowInvariant):
    """A waiting job refers to the job that it waits for, unless its flow is paused."""

    name = "jobs.waits_for_nothing"
    condition = f"r.state = 'waiting' AND r.after_id IS NULL AND NOT {PAUSED.format(job='r')}"
    advice = "`manage.py jobs cancel ID` cancels the job; a replay then makes it pending"


class WaitsInCircle(RowInvariant):
    """No jobs wait for one another."""

    name = "jobs.waits_in_circle"
    # A waiting job refers to one parent at a time: whoever follows these in a circle comes back. Of
    # the jobs of a circle, at least one is older than its parent.
    condition = """r.state = 'waiting' AND r.after_id >= r.id AND r.id IN (
      WITH RECURSIVE above AS (
        SELECT r.after_id AS id, 1 AS step
        UNION ALL
        SELECT p.after_id, above.step + 1 FROM above JOIN tailrace_jobs_live p ON p.id = above.id
        WHERE p.state = 'waiting' AND above.step < 1000 AND p.id <> r.id
      ) SELECT id FROM above)"""
    advice = "`manage.py jobs cancel ID` cancels the job and the jobs that wait for it"
