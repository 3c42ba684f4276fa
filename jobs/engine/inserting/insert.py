"""Insert jobs for fan-out, enqueue, schedules and the sweeper."""

from collections.abc import Sequence

from tailrace.db.query import prepared
from tailrace.jobs.engine.inserting import search_values
from tailrace.jobs.engine.inserting.insert_sql import INSERT, INSERT_NEW
from tailrace.jobs.engine.inserting.merging import insert_or_merge, insert_with_one_key, replaces
from tailrace.jobs.engine.inserting.new_job import Inserted, NewJob, columns_of
from tailrace.jobs.engine.inserting.owed import existing_jobs
from tailrace.jobs.engine.waking import dependents
from tailrace.jobs.runtime.states import State


def insert_jobs(jobs: Sequence[NewJob], *, of_new_events: bool = False) -> Inserted:
    """Insert these jobs in one statement, or merge them into unstarted jobs with their unique keys.
    It wakes no queues, except for merged jobs that are due.

    `of_new_events`: their events were recorded in this transaction and have no jobs yet. A merged
    job of an event gets a `skipped` row with the reason, so that each event has a row for each of
    its jobs. Raises `locks.Blocked` if another transaction holds a unique key for too long.
    """
    if not jobs:
        return Inserted()
    if of_new_events or all(job.event_id is None for job in jobs):
        return _insert(jobs, new=True)
    existing = existing_jobs([(job.event_id, job.handler, job.routing_key) for job in jobs])
    indexes = [index for index in range(len(jobs)) if index not in existing]
    inserted = _insert([jobs[index] for index in indexes], new=False)
    inserted.merged = {indexes[index]: into for index, into in inserted.merged.items()}
    return inserted


def _insert(jobs: Sequence[NewJob], *, new: bool) -> Inserted:
    """Insert or merge the jobs. `new`: no event can have any of these jobs already."""
    if not jobs:
        return Inserted()
    keyed = [index for index, job in enumerate(jobs) if job.unique_key is not None]
    if not keyed:
        rows = prepared(INSERT_NEW if new else INSERT, **columns_of(jobs))
        inserted = Inserted(ids=[id for (id,) in rows])
    elif len(keyed) == 1 and not replaces(jobs[keyed[0]].handler):
        inserted = insert_with_one_key(jobs, keyed[0])
    else:
        inserted = insert_or_merge(jobs, list(range(len(jobs))))
    if with_payload := {job.handler for job in jobs if job.payload}:
        search_values.of_jobs(with_payload, inserted.ids)
    if parents := {job.after_id for job in jobs if job.after_id and job.state == State.WAITING}:
        dependents.release_on_commit(parents)
    return inserted


def is_one_statement(jobs: Sequence[NewJob]) -> bool:
    """Whether `insert_jobs` inserts these jobs atomically without a transaction around it."""
    if any(job.event_id is not None for job in jobs):
        return False
    if any(job.payload and search_values.declared_by(job.handler) for job in jobs):
        return False
    if all(job.unique_key is None for job in jobs):
        return True
    [job, *others] = jobs
    return not others and not replaces(job.handler)
