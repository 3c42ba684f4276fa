"""The state of a flow, from the states of its jobs.

    running                 a job has not ended
    paused                  the same, but no job begins: an operator paused the flow
    completed               all jobs are completed or skipped
    completed with failures all jobs have ended, and some failed or were cancelled
    cancelled               all jobs have ended after an operator cancelled the flow
    overdue                 the deadline passed before all jobs had ended: the rest was cancelled

No row has the state of a flow: so the jobs of a flow share no row that each of them would write.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import TextChoices

from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array
from tailrace.jobs.models import Flow
from tailrace.jobs.runtime.states import DONE, LIVE


class FlowState(TextChoices):
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    WITH_FAILURES = "completed with failures"
    CANCELLED = "cancelled"
    OVERDUE = "overdue"


@dataclass(frozen=True, slots=True)
class FlowStatus:
    """The state of a flow, the numbers of its jobs, and when it ended."""

    state: FlowState
    counts: Mapping[str, int] = field(default_factory=dict)
    """The number of its jobs by state."""
    ended_at: datetime | None = None
    """When its last job ended; None while jobs are unfinished."""

    @property
    def jobs(self) -> int:
        return sum(self.counts.values())

    @property
    def ended(self) -> int:
        """The number of jobs that have ended."""
        return sum(count for state, count in self.counts.items() if state not in LIVE)

    @property
    def is_under_way(self) -> bool:
        return self.ended < self.jobs


# Each is a range of the index by flow, in the live jobs and in each day.
_COUNTS = """
SELECT flow.id, jobs.* FROM unnest(%(ids)s::bigint[]) AS flow (id), LATERAL (
  SELECT state, count(*), max(finished_at) FROM tailrace_jobs_job
  WHERE flow_id = flow.id GROUP BY state
) jobs
"""


def statuses(flows: Iterable[Flow]) -> dict[int, FlowStatus]:
    """Return the status of each flow by its id, with one statement for all."""
    by_id = {flow.pk: flow for flow in flows}
    counts: dict[int, dict[str, int]] = {id: {} for id in by_id}
    ends: dict[int, datetime] = {}
    for id, state, count, ended_at in query(_COUNTS, ids=number_array(by_id)):
        counts[id][state] = count
        if ended_at is not None:
            ends[id] = max(ends.get(id, ended_at), ended_at)
    return {
        id: FlowStatus(
            state_of(flow, counts[id]),
            counts[id],
            None if counts[id].keys() & set(LIVE) else ends.get(id),
        )
        for id, flow in by_id.items()
    }


def status(flow: Flow) -> FlowStatus:
    return statuses([flow])[flow.pk]


def state_of(flow: Flow, counts: Mapping[str, int]) -> FlowState:
    """Return the state of a flow. `counts`: the number of its jobs by state."""
    if counts.keys() & set(LIVE):
        return FlowState.RUNNING if flow.paused_at is None else FlowState.PAUSED
    if flow.deadline_met is False:
        return FlowState.OVERDUE
    if flow.cancelled_at is not None:
        return FlowState.CANCELLED
    return FlowState.WITH_FAILURES if counts.keys() - set(DONE) else FlowState.COMPLETED
