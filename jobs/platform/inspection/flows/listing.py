"""Find flows by what their jobs do now, at a bounded cost."""

from collections.abc import Sequence

from django.db.models import QuerySet

from tailrace.db.query import query
from tailrace.jobs.models import Flow
from tailrace.jobs.runtime.states import LIVE, State

MOST = 5_000
"""Flows with jobs among the live and the failed ones that are looked at, the newest first."""

# Each step of the recursion is an index probe: it jumps to the next flow.
_WITH_JOBS = """
WITH RECURSIVE flow AS (
  (SELECT flow_id AS id, 1 AS step FROM tailrace_jobs_live WHERE flow_id IS NOT NULL
   ORDER BY flow_id DESC LIMIT 1)
  UNION ALL
  SELECT next.flow_id, flow.step + 1 FROM flow, LATERAL (
    SELECT flow_id FROM tailrace_jobs_live
    WHERE flow_id IS NOT NULL AND flow_id < flow.id ORDER BY flow_id DESC LIMIT 1
  ) next WHERE flow.step < %(limit)s
)
SELECT id FROM flow WHERE EXISTS (
  SELECT 1 FROM tailrace_jobs_live j WHERE j.flow_id = flow.id AND j.state = ANY(%(states)s))
"""


def in_state(flows: QuerySet[Flow], state: str) -> QuerySet[Flow]:
    """Limit flows to the newest ones in a state: `running` or `paused`, with unfinished jobs, or
    `failed`, with failed jobs, also if they are under way."""
    if state == "failed":
        return flows.filter(pk__in=_with_jobs((State.FAILED,)))
    return flows.filter(pk__in=_with_jobs(LIVE), paused_at__isnull=state == "running")


def _with_jobs(states: Sequence[State]) -> list[int]:
    rows = query(_WITH_JOBS, limit=MOST, states=[state.value for state in states])
    return [id for (id,) in rows]
