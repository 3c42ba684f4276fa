"""Create jobs from code, without an event or as the next step of a handler's work."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from tailrace.db import connections, locks
from tailrace.db.locks import Blocked
from tailrace.db.query import database_now, query
from tailrace.events.publishing.validation import clean, describe
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.inserting.insert import insert_jobs, is_one_statement
from tailrace.jobs.engine.inserting.new_job import Inserted, InvalidJob, NewJob
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.handler import LOWEST_PRIORITY, Handler
from tailrace.jobs.runtime import payloads
from tailrace.jobs.runtime.states import DONE, LIVE, State

__all__ = [
    "Blocked", "InvalidJob", "enqueue", "enqueue_many", "enqueue_or_merge", "payload_json",
]  # fmt: skip


def enqueue(
    handler: type[Handler] | str,
    payload: BaseModel | Mapping[str, Any] | None = None,
    *,
    event_id: int | None = None,
    routing_key: str = "",
    due_at: datetime | None = None,
    delay: float = 0.0,
    unique_key: str | None = None,
    lane: str = "",
    priority: int | None = None,
    after: int | None = None,
    independent: bool = False,
) -> int | None:
    """Create one job in the caller's transaction and return its id. With `independent`, the job is
    committed at once, whatever happens to that transaction (see `publish`).

    `after` is the id of a job to wait for. If that job fails or is cancelled, the new job is
    cancelled. If an unstarted job has the same `unique_key`, the new job is merged into it (see
    `Handler.merge`): its id is returned and `after` has no effect. Returns None if the event
    already has a job with this handler and routing key. `delay` is in seconds.

    Raises UnknownHandler, InvalidJob, or Blocked if another open transaction holds the unique key,
    or is creating jobs of the same event, for more than ten seconds.
    """
    return enqueue_or_merge(
        handler, payload, event_id=event_id, routing_key=routing_key, due_at=due_at,
        delay=delay, unique_key=unique_key, lane=lane, priority=priority, after=after,
        independent=independent,
    )[0]  # fmt: skip


def enqueue_or_merge(
    handler: type[Handler] | str,
    payload: BaseModel | Mapping[str, Any] | None = None,
    *,
    independent: bool = False,
    **options: Any,
) -> tuple[int | None, bool]:
    """Do the same as `enqueue`; return the id, and whether the job is new."""
    with connections.engine_if(independent):
        inserted = _insert([new_job(handler, payload, **options)])
    return (inserted.ids[0], True) if inserted.ids else (inserted.merged.get(0), False)


def enqueue_many(
    handler: type[Handler] | str, jobs: Iterable[Mapping[str, Any]], *, independent: bool = False
) -> int:
    """Create many jobs of one handler; each mapping holds the arguments of `enqueue`, besides
    `independent`, which is the same for all.

    Returns the number of new jobs. The others were merged, or their events already have them.
    """
    with connections.engine_if(independent):
        return len(_insert([new_job(handler, **job) for job in jobs]).ids)


def _insert(jobs: list[NewJob]) -> Inserted:
    def insert() -> Inserted:
        inserted = insert_jobs(jobs)
        wake.on_commit({job.handler for job in due_jobs(jobs)})
        return inserted

    return locks.in_transaction(insert, one_statement=is_one_statement(jobs))


def due_jobs(jobs: list[NewJob]) -> list[NewJob]:
    """Return the jobs that are due now. The tick wakes the queues of later jobs."""
    now = database_now() if any(job.due_at for job in jobs) else None
    return [
        job
        for job in jobs
        if job.delay <= 0 and (job.due_at is None or (now is not None and job.due_at <= now))
    ]


def new_job(
    handler: type[Handler] | str,
    payload: BaseModel | Mapping[str, Any] | None = None,
    *,
    priority: int | None = None,
    lane: str = "",
    after: int | None = None,
    due_at: datetime | None = None,
    **rest: Any,
) -> NewJob:
    """Return a job to insert, with the handler's priority and lane, if none is given. `rest` are
    other fields of NewJob. Raises UnknownHandler or InvalidJob."""
    instance = registry.get(handler if isinstance(handler, str) else handler.name)
    priority = instance.priority if priority is None else priority
    if not 0 <= priority <= LOWEST_PRIORITY:
        raise InvalidJob(f"{instance.name}: priority {priority} is not from 0 to {LOWEST_PRIORITY}")
    if due_at is not None and due_at.tzinfo is None:
        raise InvalidJob(f"{instance.name}: due_at {due_at.isoformat()} has no time zone")
    text = payload_json(instance, payload)
    try:
        lane = instance.lane_without_event(text, lane)
    except ValueError as error:
        raise InvalidJob(str(error)) from error
    state = State.PENDING if after is None else _state_after(instance, after)
    return NewJob(
        instance.name, payload=text, state=state, priority=priority, lane=lane, after_id=after,
        due_at=due_at, **rest,
    )  # fmt: skip


def payload_json(handler: Handler, payload: BaseModel | Mapping[str, Any] | None) -> str | None:
    """Return the payload as JSON text to store, with the defaults of the handler's model; None if
    the handler takes no payload. Raises InvalidJob, also for undeclared keys."""
    if handler.Payload is None:
        if payload:
            raise InvalidJob(f"{handler.name} takes no payload; declare a Payload model on it")
        return None
    try:
        text = payloads.read(handler.Payload, payload).model_dump_json()
    except ValidationError as error:
        raise InvalidJob(f"{handler.name}: {describe(error, handler.Payload)}") from None
    except ValueError as error:
        raise InvalidJob(f"{handler.name}: payload is not JSON: {error}") from None
    if "\\u" in text and clean(json.loads(text))[1]:
        raise InvalidJob(f"{handler.name}: payload has a NUL character, which cannot be stored")
    return text


def _state_after(handler: Handler, parent: int) -> State:
    # Not a queryset: a router may send its reads to a replica, which lags behind.
    rows = query("SELECT state FROM tailrace_jobs_job WHERE id = %(id)s", id=parent)
    if not rows:
        raise InvalidJob(f"{handler.name}: there is no job {parent} to wait for")
    [(state,)] = rows
    if state in DONE:
        return State.PENDING
    if state in LIVE:
        return State.WAITING
    raise InvalidJob(f"{handler.name}: job {parent} is {state}; a job after it would never run")
