"""Results of tasks: as stored, and as they change while a worker runs the task."""

import json
from typing import Any

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.events.types import load_payload
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.frameworks.django_tasks.errors import LOST, WITHOUT_ATTEMPT, listed_as
from tailrace.jobs.frameworks.django_tasks.framework import (
    Task,
    TaskError,
    TaskResult,
    TaskResultStatus,
)
from tailrace.jobs.frameworks.django_tasks.payload import TaskPayload
from tailrace.jobs.handler import ClaimedJob
from tailrace.jobs.runtime.states import DONE, LIVE, State

# Not a queryset: a router may send its reads to a replica, which lags behind.
_READ = """
SELECT handler, payload::text, state, created_at, started_at, finished_at, worker,
       CASE WHEN state = 'completed' THEN result::text END, error, failed.*
FROM tailrace_jobs_job j, LATERAL (
  SELECT min(a.started_at),
         array_agg(CASE a.outcome WHEN 'lost' THEN %(lost)s ELSE a.error_class END
                   ORDER BY a.claim_no),
         array_agg(coalesce(nullif(a.traceback, ''), a.message) ORDER BY a.claim_no),
         array_agg(a.worker ORDER BY a.claim_no)
  FROM tailrace_jobs_attempt a
  WHERE a.job_id = j.id AND a.outcome IN ('retried', 'failed', 'lost')
) failed (first_at, classes, texts, workers)
WHERE id = %(id)s
"""


def read(id: int) -> TaskResult | None:
    """Return the result of the job with this id; None if there is no such job, or if its handler
    is not a task in this code."""
    rows = query(_READ, id=id, lost=LOST)
    task = getattr(registry.find(rows[0][0]), "task", None) if rows else None
    if task is None:
        return None
    [(_handler, payload, state, created_at, started_at, finished_at, worker, *rest)] = rows
    returned, error, first_at, classes, texts, workers = rest
    given: Any = load_payload(TaskPayload, json.loads(payload or "{}"))
    errors = [_error(*each) for each in zip(classes or (), texts or (), strict=True)]
    if error and state in WITHOUT_ATTEMPT and (state != State.FAILED or not errors):
        errors.append(_error(WITHOUT_ATTEMPT[state], error))
    ran = state == State.RUNNING or state in DONE
    result = new(given.task_as_enqueued(task), id, given)
    _set(
        result,
        status=_status(state),
        enqueued_at=given.enqueued_at or created_at,
        started_at=first_at or started_at,
        last_attempted_at=started_at,
        finished_at=finished_at,
        errors=errors,
        worker_ids=[*(workers or ()), *([worker] if ran else ())],
        _return_value=None if returned is None else json.loads(returned),
    )
    return result


def new(task: Task, job_id: int, payload: TaskPayload) -> TaskResult:
    """Return the result of a job that is pending."""
    return TaskResult(
        id=str(job_id),
        task=task,
        args=payload.args,
        kwargs=payload.kwargs,
        backend=payload.backend,
        status=TaskResultStatus.READY,
        enqueued_at=payload.enqueued_at,
        started_at=None,
        last_attempted_at=None,
        finished_at=None,
        errors=[],
        worker_ids=[],
    )


def of_claim(task: Task, job: ClaimedJob) -> TaskResult:
    """Return the result of a job that this worker has just claimed. It reads the database only if
    the job was claimed before."""
    if job.claim_no > 1 and (result := read(job.id)):
        return result
    now = clock.now()
    result = new(job.payload.task_as_enqueued(task), job.id, job.payload)
    _set(result, status=TaskResultStatus.RUNNING, started_at=now, last_attempted_at=now)
    result.worker_ids.append(job.worker)
    return result


def end(result: TaskResult, verdict: Verdict) -> bool:
    """Update the result by the verdict on its job; return whether the task is finished."""
    if verdict.state in LIVE:
        return False
    status = _status(verdict.state)
    if status is TaskResultStatus.FAILED:
        result.errors.append(_error(verdict.error_class, verdict.traceback or verdict.error))
    _set(result, status=status, finished_at=clock.now())
    return True


def succeed(result: TaskResult, returned: Any) -> None:
    status = TaskResultStatus.SUCCESSFUL
    _set(result, status=status, finished_at=clock.now(), _return_value=returned)


def _status(state: str) -> TaskResultStatus:
    if state == State.RUNNING:
        return TaskResultStatus.RUNNING
    if state in LIVE:
        return TaskResultStatus.READY
    return TaskResultStatus.SUCCESSFUL if state in DONE else TaskResultStatus.FAILED


def _error(error_class: str, text: str) -> TaskError:
    return TaskError(exception_class_path=listed_as(error_class), traceback=text)


def _set(result: TaskResult, **fields: Any) -> None:
    for name, value in fields.items():
        object.__setattr__(result, name, value)  # the class is frozen, for its users
