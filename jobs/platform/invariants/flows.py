"""Flows: deadlines are kept, paused flows are held, and their jobs fit together."""

from collections.abc import Sequence

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.engine.maintenance.sweeping.row_invariant import RowInvariant
from tailrace.jobs.engine.waking.dependents import PAUSED
from tailrace.jobs.flows import operations
from tailrace.jobs.flows.hold import hold
from tailrace.jobs.models import Flow, Job

_HELD_BACK = """
SELECT j.id FROM tailrace_jobs_flow f JOIN tailrace_jobs_live j ON j.flow_id = f.id
WHERE f.paused_at IS NOT NULL AND j.state = 'pending' LIMIT %(limit)s
"""


class DeadlineIsKept(RowInvariant):
    """A flow whose deadline has passed has no unfinished jobs."""

    name = "flows.deadline_passed"
    every = 15
    limit = 100
    table = "tailrace_jobs_flow"
    condition = f"r.deadline_at < {clock.NOW} AND r.deadline_met IS NULL"
    advice = "the unfinished jobs of the flow are cancelled"

    def repair(self, violations: Sequence[int]) -> int:
        flows = Flow.objects.filter(pk__in=self.lock(violations)).order_by("pk")
        return len([operations.end_overdue(flow) for flow in flows])


class PausedFlowIsHeld(RowInvariant):
    """A job of a paused flow does not begin."""

    name = "flows.job_of_paused_flow"
    every = 15
    # A job of a flow that is being paused, and a job that is retried, are held back by this.
    condition = f"r.state = 'pending' AND {PAUSED.format(job='r')}"
    advice = "the job is held back until the flow is resumed"

    def find(self) -> list[int]:
        return [id for (id,) in query(_HELD_BACK, limit=self.limit)]

    def repair(self, violations: Sequence[int]) -> int:
        flows = Job.objects.filter(pk__in=violations).values_list("flow_id", flat=True).distinct()
        return sum(hold(flow) for flow in flows if flow is not None)


class FlowExists(RowInvariant):
    """The flow of a job exists."""

    name = "flows.job_without_flow"
    every = None
    condition = """r.flow_id IS NOT NULL
      AND (SELECT 1 FROM tailrace_jobs_flow f WHERE f.id = r.flow_id) IS NULL"""
    advice = "cancel the job if it is unfinished; its flow was deleted by hand"


class NameIsUnique(RowInvariant):
    """No two jobs of a flow have the same name, so no job and no callback exists twice."""

    name = "flows.job_twice"
    every = None
    table = "tailrace_jobs_flow"
    condition = """EXISTS (
      SELECT 1 FROM tailrace_jobs_job j WHERE j.flow_id = r.id
      GROUP BY j.flow_name HAVING count(*) > 1)"""
    advice = "cancel one of the jobs with the same name"


class WaitsForParent(RowInvariant):
    """A waiting job of a flow waits for one of its own parents."""

    name = "flows.waits_for_stranger"
    every = None
    condition = """r.state = 'waiting' AND r.after_id IS NOT NULL AND r.flow_id IS NOT NULL
      AND (SELECT count(*) > 0 AND count(*) FILTER (WHERE d.parent_id = r.after_id) = 0
           FROM tailrace_jobs_dependency d WHERE d.job_id = r.id)"""
    advice = "`manage.py jobs cancel ID`, then a replay, decides the job by its own parents"
