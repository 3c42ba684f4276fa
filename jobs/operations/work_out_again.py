"""Replay a job that failed at fan-out, because its handler could not work out its jobs.

Such a job stands for all jobs of the handler for the event. On replay the handler works out its
jobs again: the failed job becomes the first of them, and the others are created.
"""

from collections.abc import Sequence
from dataclasses import replace

from django.db import DatabaseError

from tailrace.db import clock, connections
from tailrace.db.query import execute, query
from tailrace.events.publish import RECORDED, Recorded
from tailrace.events.publishing.validation import clean
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.inserting.fan_out import NOT_WORKED_OUT, jobs_for
from tailrace.jobs.engine.inserting.insert import insert_jobs
from tailrace.jobs.engine.inserting.new_job import NewJob
from tailrace.jobs.engine.settling.settle_sql import MERGED, taken_by
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.handler import Handler
from tailrace.jobs.operations import OperationResult
from tailrace.jobs.runtime.states import State

NOT_WANTED = "its handler creates no job for the event"
HAS_ITS_JOBS = "the event already has all jobs of its handler"


_NOT_WORKED_OUT = f"""
SELECT j.id, j.handler, {RECORDED}
FROM tailrace_jobs_job j JOIN tailrace_events_event e ON e.id = j.event_id
WHERE j.id = ANY(%(ids)s) AND j.state = 'failed' AND j.claim_no = 0
  AND starts_with(j.error, %(prefix)s)
ORDER BY j.id FOR NO KEY UPDATE OF j
"""


def work_out_again(ids: Sequence[int]) -> OperationResult:
    """For each of these jobs that failed at fan-out, let its handler work out the jobs of the
    event again; ignore other jobs. If the handler fails again, the job stays failed, with the
    new error."""
    worked_out = OperationResult()
    for id, name, *row in query(_NOT_WORKED_OUT, ids=list(ids), prefix=NOT_WORKED_OUT):
        event, handler = Recorded.from_row(row), registry.find(name)
        if handler is None:
            worked_out.refused[id] = f"no handler is called {name!r}"
            continue
        jobs = _jobs(handler, event)
        if jobs and jobs[0].state == State.FAILED:
            execute(_FAIL_AGAIN, id=id, error=jobs[0].error)
            worked_out.refused[id] = jobs[0].error
        else:
            _become(id, jobs)
            worked_out.changed.append(id)
    return worked_out


def _jobs(handler: Handler, event: Recorded) -> list[NewJob]:
    try:
        with connections.atomic():
            jobs = jobs_for(event, [handler])
    except DatabaseError as error:
        reason = clean(f"{NOT_WORKED_OUT}{type(error).__name__}: {error}")[0][:2000]
        return [NewJob(handler.name, state=State.FAILED, error=reason)]
    return [replace(job, delay=0.0) for job in jobs]


_FAIL_AGAIN = (
    f"UPDATE tailrace_jobs_job SET error = %(error)s, finished_at = {clock.NOW} WHERE id = %(id)s"
)
_SKIP = f"""
UPDATE tailrace_jobs_job SET state = 'skipped', error = %(reason)s, finished_at = {clock.NOW}
WHERE id = %(id)s
"""
_BECOME = f"""
UPDATE tailrace_jobs_job j
SET state = CASE WHEN taken.by IS NULL THEN 'pending' ELSE 'skipped' END,
    error = CASE WHEN taken.by IS NULL THEN '' ELSE {MERGED} END,
    finished_at = CASE WHEN taken.by IS NULL THEN NULL ELSE {clock.NOW} END,
    routing_key = own.routing_key, lane = own.lane, unique_key = own.unique_key,
    priority = %(priority)s, due_at = {clock.NOW}
FROM (SELECT %(handler)s::text AS handler, %(routing_key)s::text AS routing_key,
             %(lane)s::text AS lane, %(unique_key)s::text AS unique_key) own,
     {taken_by("own")}
WHERE j.id = %(id)s
"""
_OTHER_ROUTING_KEYS = """
SELECT o.routing_key FROM tailrace_jobs_job j
JOIN tailrace_jobs_job o ON o.event_id = j.event_id AND o.handler = j.handler AND o.id <> j.id
WHERE j.id = %(id)s
"""


def _become(id: int, jobs: list[NewJob]) -> None:
    """Turn the job into the first of these jobs that the event does not have; create the others."""
    if not jobs:
        execute(_SKIP, id=id, reason=NOT_WANTED)
        return
    existing = {key for (key,) in query(_OTHER_ROUTING_KEYS, id=id)}
    lacking: dict[str, NewJob] = {}
    for job in jobs:
        if job.routing_key not in existing:
            lacking.setdefault(job.routing_key, job)
    if not lacking:
        execute(_SKIP, id=id, reason=HAS_ITS_JOBS)
        return
    # The job's own routing key is empty, so no other job of the event can have an empty key.
    first = lacking.pop("" if "" in lacking else next(iter(lacking)))
    execute(
        _BECOME, id=id, handler=first.handler, routing_key=first.routing_key, lane=first.lane,
        unique_key=first.unique_key, priority=first.priority,
    )  # fmt: skip
    insert_jobs(list(lacking.values()))
    wake.on_commit({first.handler})
