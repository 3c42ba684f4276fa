"""enqueue: a job that no event caused, or one that a handler owes further."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from pydantic import BaseModel, ValidationError

from events import clock
from events.prepare import clean, describe
from jobs import registry, wake
from jobs.handler import LOWEST_PRIORITY, NO_LANE, Handler
from jobs.insert import InvalidJob, NewJob, insert_jobs
from jobs.models import Job
from jobs.states import DONE, LIVE, State

__all__ = ["InvalidJob", "enqueue", "enqueue_many"]


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
) -> int | None:
    """Owe one job, in the caller's transaction; return its id.

    `after` is the id of the job it waits for; it is cancelled if that one fails or is cancelled.
    None comes back when an unstarted job has the same `unique_key`, or the event already owes
    this (handler, routing_key). Raises UnknownHandler or InvalidJob.
    """
    ids = _insert(
        [
            _new_job(
                handler, payload, event_id=event_id, routing_key=routing_key, due_at=due_at,
                delay=delay, unique_key=unique_key, lane=lane, priority=priority, after=after,
            )
        ]
    )  # fmt: skip
    return ids[0] if ids else None


def enqueue_many(handler: type[Handler] | str, jobs: Iterable[Mapping[str, Any]]) -> int:
    """Owe many jobs of one handler; each mapping holds the arguments of `enqueue`.

    Returns how many were new.
    """
    return len(_insert([_new_job(handler, **job) for job in jobs]))


def _insert(jobs: list[NewJob]) -> list[int]:
    with transaction.atomic(savepoint=False):
        ids = insert_jobs(jobs)
        wake.on_commit({job.handler for job in jobs if _is_due(job)})
    return ids


def _is_due(job: NewJob) -> bool:
    """What is due later is left to the tick."""
    return job.delay <= 0 and (job.due_at is None or job.due_at <= clock.now())


def _new_job(
    handler: type[Handler] | str,
    payload: BaseModel | Mapping[str, Any] | None = None,
    *,
    priority: int | None = None,
    lane: str = "",
    after: int | None = None,
    due_at: datetime | None = None,
    **rest: Any,
) -> NewJob:
    found = registry.get(handler if isinstance(handler, str) else handler.name)
    priority = found.priority if priority is None else priority
    if not 0 <= priority <= LOWEST_PRIORITY:
        raise InvalidJob(f"{found.name}: priority {priority} is not from 0 to {LOWEST_PRIORITY}")
    if due_at is not None and due_at.tzinfo is None:
        raise InvalidJob(f"{found.name}: due_at {due_at.isoformat()} has no time zone")
    return NewJob(
        handler=found.name,
        payload=_payload(found, payload),
        state=State.PENDING if after is None else _state_after(found, after),
        priority=priority,
        lane=(lane or NO_LANE) if found.in_lanes() else lane,
        after_id=after,
        due_at=due_at,
        **rest,
    )


def _payload(handler: Handler, payload: BaseModel | Mapping[str, Any] | None) -> str | None:
    if handler.Payload is None:
        if payload is not None:
            raise InvalidJob(f"{handler.name} takes no payload; declare a Payload model on it")
        return None
    try:
        if not isinstance(payload, handler.Payload):
            payload = handler.Payload.model_validate(payload if payload is not None else {})
        text = payload.model_dump_json()
    except ValidationError as error:
        raise InvalidJob(f"{handler.name}: {describe(error)}") from None
    except ValueError as error:
        raise InvalidJob(f"{handler.name}: payload is not JSON: {error}") from None
    if "\\u" in text and clean(json.loads(text))[1]:
        raise InvalidJob(f"{handler.name}: payload has a NUL character, which cannot be stored")
    return text


def _state_after(handler: Handler, parent: int) -> State:
    state = Job.objects.filter(pk=parent).values_list("state", flat=True).first()
    if state is None:
        raise InvalidJob(f"{handler.name}: there is no job {parent} to wait for")
    if state in DONE:
        return State.PENDING
    if state in LIVE:
        return State.WAITING
    raise InvalidJob(f"{handler.name}: job {parent} is {state}; what waits for it would never run")
