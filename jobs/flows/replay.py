"""Run a whole flow again, as a new flow: first a plan with the payload of each job, then the
replay."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from tailrace.db.query import query
from tailrace.jobs.engine.inserting.new_job import InvalidJob
from tailrace.jobs.engine.registry import UnknownHandler
from tailrace.jobs.enqueue import new_job
from tailrace.jobs.flows.graph import ADDED, FlowJob
from tailrace.jobs.flows.new_flow import NewFlow
from tailrace.jobs.models import Flow, Need
from tailrace.jobs.runtime.states import State

log = structlog.get_logger(__name__)

_JOBS = """
SELECT id, flow_name, handler, payload::text, priority, lane, state, after_id
FROM tailrace_jobs_job WHERE flow_id = %(flow)s ORDER BY id
"""
_DEPENDENCIES = """
SELECT d.job_id, d.parent_id, d.need FROM tailrace_jobs_dependency d
JOIN tailrace_jobs_job j ON j.id = d.job_id WHERE j.flow_id = %(flow)s
ORDER BY d.job_id, d.position, d.parent_id
"""


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job of a flow, as a replay would create it."""

    id: int
    """Of the job that would be run again."""
    name: str
    handler: str
    state: str
    """Of the job that would be run again."""
    payload: Any
    """What it was given: JSON values."""
    changes: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    """The fields of the payload that would differ: what was given, and what would be. They differ
    if the handler's Payload model has changed."""
    problem: str = ""
    """Why the job cannot be created; empty if it can."""


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a replay of a flow would do."""

    flow: Flow
    jobs: list[PlannedJob]
    added: int
    """Jobs that other jobs of the flow added while they ran. They are left out, because those jobs
    add them again."""
    new: NewFlow = field(repr=False)
    """The new flow, without the jobs that cannot be created."""

    @property
    def problems(self) -> list[PlannedJob]:
        return [job for job in self.jobs if job.problem]

    @property
    def changed(self) -> list[PlannedJob]:
        return [job for job in self.jobs if job.changes]


def plan_replay(flow: Flow) -> ReplayPlan:
    """Return what a replay of the flow would do; nothing is written."""
    rows = query(_JOBS, flow=flow.pk)
    needs: dict[int, dict[int, Need]] = defaultdict(dict)
    for id, parent, need in query(_DEPENDENCIES, flow=flow.pk):
        needs[id][parent] = Need(need)
    deadline = None if flow.deadline_at is None else flow.deadline_at - flow.created_at
    new = NewFlow(flow.name, deadline=deadline)
    new.copy_of = flow.pk
    copies: dict[int, FlowJob] = {}
    planned, added = list[PlannedJob](), set[int]()
    for id, name, handler, text, priority, lane, state, after in rows:
        if ADDED in name:
            added.add(id)
            continue
        if after is not None and id not in needs:
            needs[id][after] = Need.SUCCESS
        payload = None if text is None else json.loads(text)
        changes, problem = {}, ""
        try:
            job = new_job(handler, payload, priority=priority, lane=lane)
            copies[id] = new.jobs[name] = FlowJob(name, job, copy_of=id)
            changes = _changes(payload, None if job.payload is None else json.loads(job.payload))
        except (InvalidJob, UnknownHandler) as error:
            problem = str(error)
        planned.append(PlannedJob(id, name, handler, State(state), payload, changes, problem))
    for id, copy in copies.items():
        for parent, need in needs[id].items():
            if parent not in added:
                copy.parents[copies.get(parent, parent)] = need
    return ReplayPlan(flow, planned, len(added), new)


def replay_flow(plan: ReplayPlan, by: str) -> NewFlow:
    """Create a new flow with the jobs of the planned flow, their payloads and their dependencies,
    and return it. It gets the same time until its deadline, and no unique key. Raises InvalidJob if
    a job cannot be created."""
    flow = plan.flow
    if plan.problems:
        first = plan.problems[0]
        raise InvalidJob(
            f"flow {flow.pk} cannot run again: {len(plan.problems)} of its {len(plan.jobs)} jobs"
            f" cannot be created; {first.name}: {first.problem}"
        )
    plan.new.enqueue()
    log.info("flows.replayed", flow=flow.pk, by=by, new_flow=plan.new.id, jobs=len(plan.jobs))
    return plan.new


def _changes(before: Any, now: Any) -> dict[str, tuple[Any, Any]]:
    before, now = before or {}, now or {}
    fields = [*before, *(key for key in now if key not in before)]
    return {
        key: (before.get(key), now.get(key)) for key in fields if before.get(key) != now.get(key)
    }
