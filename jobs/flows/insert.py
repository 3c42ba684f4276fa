"""Insert the jobs of a flow with their dependencies, in the caller's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tailrace.db.query import prepared, query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.jobs.engine.inserting import search_values
from tailrace.jobs.engine.inserting.insert_sql import ARRAYS, COLUMNS, NAMES, VALUES
from tailrace.jobs.engine.inserting.new_job import InvalidJob, columns_of
from tailrace.jobs.engine.waking import dependents, wake
from tailrace.jobs.enqueue import due_jobs
from tailrace.jobs.flows.graph import FlowJob
from tailrace.jobs.models import Need
from tailrace.jobs.runtime.states import DONE, LIVE, State

BATCH = 5_000
"""Rows per statement."""

# The ids of the jobs are known before, because they refer to one another.
_INSERT = f"""
INSERT INTO tailrace_jobs_live (id, flow_id, flow_name, copy_of, {COLUMNS})
SELECT id, %(flow)s, flow_name, copy_of, {VALUES}
FROM unnest({ARRAYS}, %(id)s::bigint[], %(flow_name)s::text[], %(copy_of)s::bigint[])
  AS new ({NAMES}, id, flow_name, copy_of)
"""
_IDS = """
SELECT nextval('tailrace_jobs_job_id_seq') FROM generate_series(1, %(count)s)
"""
_STATES = "SELECT id, state FROM tailrace_jobs_job WHERE id = ANY(%(ids)s::bigint[])"
_DEPENDENCIES = """
INSERT INTO tailrace_jobs_dependency (job_id, parent_id, need, position)
SELECT * FROM unnest(
  %(job)s::bigint[], %(parent)s::bigint[], %(need)s::text[], %(position)s::int[])
"""


def insert(flow_id: int, jobs: Sequence[FlowJob], states: Mapping[int, str]) -> None:
    """Insert the jobs, parents before their children, and set their ids. After the commit, wake the
    queues of the jobs that can run. `states`: of the parents that exist already."""
    for job, (id,) in zip(jobs, prepared(_IDS, count=len(jobs)), strict=True):
        job.id = id
    for job in jobs:
        if job.parents:
            _wait_for_parents(job, states)
    for start in range(0, len(jobs), BATCH):
        _insert_rows(flow_id, jobs[start : start + BATCH])
    _insert_dependencies(jobs)
    waited_for = {job.job.after_id for job in jobs if job.job.state == State.WAITING}
    if existing := [id for id in states if id in waited_for]:
        dependents.release_on_commit(existing)
    ready = [job.job for job in jobs if job.job.state == State.PENDING]
    wake.on_commit({job.handler for job in due_jobs(ready)})


def states_of_existing(name: str, jobs: Sequence[FlowJob]) -> dict[int, str]:
    """Return the states of the parents that exist already. Raises InvalidJob if such a parent does
    not exist, or has ended so that its child would never run."""
    ids = sorted({id for job in jobs for id in job.parents if isinstance(id, int)})
    states = dict(query(_STATES, ids=number_array(ids))) if ids else {}
    for job in jobs:
        for parent in job.parents:
            if isinstance(parent, int) and parent not in states:
                raise InvalidJob(
                    f"flow {name!r}: the job {job.name!r} waits for job {parent}, which does not"
                    " exist: its id is wrong, or it was pruned"
                )
        _check_needs(name, job, states)
    return states


def _check_needs(name: str, job: FlowJob, states: Mapping[int, str]) -> None:
    """Raise InvalidJob if the job would never run."""
    parents = {id: need for id, need in job.parents.items() if isinstance(id, int)}
    for id, need in parents.items():
        if need == Need.SUCCESS and states[id] not in (*LIVE, *DONE):
            raise InvalidJob(
                f"flow {name!r}: job {id} is {states[id]}; the job {job.name!r} after it would"
                " never run"
            )
    needed = [parent for parent, need in job.parents.items() if need == Need.FAILURE]
    if needed and all(isinstance(id, int) and states[id] in DONE for id in needed):
        raise InvalidJob(
            f"flow {name!r}: none of the jobs failed whose failure the job {job.name!r} waits for;"
            " it would never run"
        )


def _parent_ids(job: FlowJob) -> dict[int, Need]:
    ids: dict[int, Need] = {}
    for parent, need in job.parents.items():
        id = parent.id if isinstance(parent, FlowJob) else parent
        if not isinstance(id, int):
            raise TypeError(f"{parent} has no id")
        ids[id] = need
    return ids


def _wait_for_parents(job: FlowJob, states: Mapping[int, str]) -> None:
    """Set the state of the job, and the parent that it waits for first: the newest, which mostly
    ends last."""
    parents = _parent_ids(job)
    unfinished = [id for id in parents if states.get(id, State.WAITING) in LIVE]
    if unfinished:
        job.job = replace(job.job, state=State.WAITING.value, after_id=max(unfinished))
        return
    after = max(parents, default=None)
    job.job = replace(job.job, state=State.PENDING.value, after_id=after)


def _insert_rows(flow_id: int, jobs: Sequence[FlowJob]) -> None:
    prepared(
        _INSERT,
        flow=flow_id,
        id=number_array([job.id for job in jobs]),
        flow_name=text_array([job.name for job in jobs]),
        copy_of=number_array([job.copy_of for job in jobs]),
        **columns_of([job.job for job in jobs]),
    )
    if with_payload := {job.job.handler for job in jobs if job.job.payload}:
        search_values.of_jobs(with_payload, [job.id for job in jobs if job.id is not None])


def _insert_dependencies(jobs: Sequence[FlowJob]) -> None:
    rows = [
        (job.id, parent, need, position)
        for job in jobs
        if len(job.parents) > 1 or Need.SUCCESS not in job.parents.values()
        for position, (parent, need) in enumerate(_parent_ids(job).items())
    ]
    for start in range(0, len(rows), BATCH):
        ids, parents, needs, positions = zip(*rows[start : start + BATCH], strict=True)
        prepared(
            _DEPENDENCIES,
            job=number_array(ids),
            parent=number_array(parents),
            need=text_array(need.value for need in needs),
            position=number_array(positions),
        )
