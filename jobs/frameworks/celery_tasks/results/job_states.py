"""Read the jobs of tasks, and what Celery calls their states."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from celery import states

from tailrace.db import clock
from tailrace.db.query import prepared, query
from tailrace.db.sql.arrays import text_array
from tailrace.db.sql.plans import probe
from tailrace.jobs.engine.waking.dependents import WAITED
from tailrace.jobs.handler.parents import EDGES
from tailrace.jobs.runtime.states import DONE, LIVE, State

GROUP = "GROUP"
"""The state of a row that has a group, and no task."""
BATCH = 1000


@dataclass(frozen=True, slots=True)
class Stored:
    """A task with its job."""

    task_id: str
    state: str
    """What the task has stored; may be empty."""
    meta: dict[str, Any] | None
    children: list[Any] | None
    handler: str
    job_state: str
    job_result: Any
    error: str
    after: int | None
    payload: dict[str, Any]
    worker: str
    finished_at: datetime | None
    age: float | None
    """Seconds since its end."""
    error_class: str
    traceback: str

    @property
    def celery_state(self) -> str:
        if self.job_state in LIVE:
            is_old = self.state in states.READY_STATES  # of an earlier run
            return states.PENDING if is_old else self.state or states.PENDING
        if self.job_state in DONE:
            return states.SUCCESS
        if self.job_state == State.FAILED or self._parent_failed():
            return states.FAILURE
        return self.state or states.REVOKED

    def _parent_failed(self) -> bool:
        return self.error.startswith(WAITED)

    @property
    def is_ignored(self) -> bool:
        return bool(self.payload.get("headers", {}).get("ignore_result"))

    @property
    def result(self) -> Any:
        """What the task returned, as JSON values."""
        if self.job_result is None and self.state == states.SUCCESS and self.meta:
            return self.meta["result"]
        return self.job_result

    @property
    def is_chord_body(self) -> bool:
        return bool(self.payload.get("is_body"))


_COLUMNS = f"""
  coalesce(t.state, ''), t.meta::text, t.children::text, j.handler, j.state, j.result::text,
  j.error, j.after_id, j.payload::text, j.worker, j.finished_at,
  extract(epoch FROM {clock.NOW} - j.finished_at)::float8, coalesce(a.error_class, ''),
  coalesce(a.traceback, '')"""
_ATTEMPT = f"""
LEFT JOIN LATERAL (
  SELECT error_class, traceback FROM tailrace_jobs_attempt a
  WHERE {probe("a.job_id", "j.id")} AND j.state = 'failed' ORDER BY a.claim_no DESC LIMIT 1
) a ON true"""
# Not a queryset: a router may send its reads to a replica, which lags behind.
_OF_TASKS = f"""
SELECT t.task_id, {_COLUMNS}
FROM tailrace_jobs_celerytask t JOIN tailrace_jobs_job j ON {probe("j.id", "t.job_id")} {_ATTEMPT}
WHERE t.task_id = ANY(%(ids)s::text[])
"""
_OF_PARENTS = f"""
SELECT coalesce(t.task_id, j.payload->>'id', ''), {_COLUMNS}
FROM ({EDGES}) edge JOIN tailrace_jobs_job j ON {probe("j.id", "edge.parent_id")}
LEFT JOIN tailrace_jobs_celerytask t ON t.job_id = j.id {_ATTEMPT}
ORDER BY edge.position, j.id
"""
# From a parent up to the job that failed, or to the body of a chord, in a chain of cancelled jobs.
_CAUSE = f"""
WITH RECURSIVE up AS (
  SELECT j.id, 0 AS distance, j.after_id, {{is_cancelled}} AS goes_on
  FROM tailrace_jobs_job j WHERE {probe("j.id", "%(id)s")}
  UNION ALL
  SELECT j.id, up.distance + 1, j.after_id, {{is_cancelled}}
  FROM up JOIN tailrace_jobs_job j ON {probe("j.id", "up.after_id")} WHERE up.goes_on
)
SELECT coalesce(t.task_id, j.payload->>'id', ''), {_COLUMNS}
FROM (SELECT id FROM up ORDER BY distance DESC LIMIT 1) last
JOIN tailrace_jobs_job j ON {probe("j.id", "last.id")}
LEFT JOIN tailrace_jobs_celerytask t ON t.job_id = j.id {_ATTEMPT}
""".format(
    is_cancelled=f"""(j.state = 'cancelled' AND starts_with(j.error, '{WAITED}')
    AND NOT coalesce(j.payload->'is_body' = 'true', false))"""
)


_UNFINISHED = f"""
SELECT t.task_id
FROM tailrace_jobs_celerytask t JOIN tailrace_jobs_live j ON {probe("j.id", "t.job_id")}
WHERE t.task_id = ANY(%(ids)s::text[]) AND j.state IN ('waiting', 'pending', 'running')
"""


def unfinished(task_ids: Iterable[str]) -> set[str]:
    """Return the tasks whose jobs have not ended. It looks at the live jobs only, so a caller may
    look again and again while it waits for results."""
    return {id for (id,) in prepared(_UNFINISHED, ids=text_array(list(task_ids)))}


def of_tasks(task_ids: Iterable[str]) -> dict[str, Stored]:
    """Return the tasks that have a job, by their ids."""
    ids, stored = list(task_ids), dict[str, Stored]()
    for start in range(0, len(ids), BATCH):
        rows = query(_OF_TASKS, ids=text_array(ids[start : start + BATCH]))
        stored |= {row[0]: _stored(row) for row in rows}
    return stored


def of_parents(job: int) -> list[Stored]:
    """Return the tasks that this job waited for, in the order of their flow."""
    return [_stored(row) for row in query(_OF_PARENTS, job=job)]


def cause(stored: Stored) -> Stored | None:
    """Return the task whose failure is the reason why this one was cancelled: of a body of a chord
    the part that failed; None if it was not cancelled for that."""
    if stored.job_state != State.CANCELLED or not stored.error.startswith(WAITED):
        return None
    rows = query(_CAUSE, id=stored.after)
    return _stored(rows[0]) if rows else None


def _stored(row: tuple[Any, ...]) -> Stored:
    task_id, state, meta, children, handler, job_state, result, error, after, payload, *rest = row
    worker, finished_at, age, error_class, traceback = rest
    return Stored(
        task_id=task_id,
        state=state,
        meta=_loaded(meta),
        children=_loaded(children),
        handler=handler,
        job_state=job_state,
        job_result=_loaded(result),
        error=error,
        after=after,
        payload=_loaded(payload) or {},
        worker=worker,
        finished_at=finished_at,
        age=age,
        error_class=error_class,
        traceback=traceback,
    )


def _loaded(text: str | None) -> Any:
    return None if text is None else json.loads(text)
