"""Create one job per handler and routing key of an event, in the transaction of the event."""

from collections.abc import Iterable, Sequence
from typing import Any

import structlog
from django.db import DatabaseError
from django.dispatch import receiver

from tailrace.events.publish import Recorded
from tailrace.events.publishing.signals import published
from tailrace.events.publishing.validation import clean
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.inserting import search_values
from tailrace.jobs.engine.inserting.insert import insert_jobs
from tailrace.jobs.engine.inserting.new_job import NewJob
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.handler import NO_LANE, Handler
from tailrace.jobs.runtime.states import State

log = structlog.get_logger(__name__)

NOT_WORKED_OUT = "its jobs could not be worked out: "
"""The beginning of the error of a failed job that stands for such jobs. A replay creates them."""


@receiver(published, dispatch_uid="jobs.fan_out")
def fan_out(events: Sequence[Recorded], **kwargs: Any) -> None:
    """Insert the jobs of these events, and wake their queues after the commit."""
    jobs = [job for event in events for job in jobs_for(event)]
    insert_jobs(jobs, of_new_events=True)
    search_values.of_events(events)
    totals.published_on_commit(events)
    wake.on_commit({job.handler for job in jobs if job.delay <= 0})


def jobs_for(event: Recorded, handlers: Iterable[Handler] | None = None) -> list[NewJob]:
    """Return the jobs of the event for `handlers` (None: for all handlers of its type)."""
    candidates = registry.handlers_for(event.type) if handlers is None else handlers
    return [job for handler in candidates for job in _jobs_for_handler(handler, event)]


def _jobs_for_handler(handler: Handler, event: Recorded) -> list[NewJob]:
    """Return the jobs of the event for this handler. If the handler raises, return one failed job:
    the error must not prevent the event from being recorded."""
    try:
        if _is_left_out(handler, event) or not handler.wants(event):
            return []
        keys = dict.fromkeys(handler.routing_keys(event))
        return [_new_job(handler, event, key) for key in keys]
    except DatabaseError:
        raise
    except Exception as error:
        log.exception("fan_out.failed", queue=handler.name, event_id=event.id)
        reason = f"{NOT_WORKED_OUT}{type(error).__name__}: {error}"
        error_text = clean(reason)[0][:2000]
        return [NewJob(handler.name, event.id, state=State.FAILED.value, error=error_text)]


def _is_left_out(handler: Handler, event: Recorded) -> bool:
    event_type = event.event_type
    return not handler.quiet and event_type is not None and event_type.is_quiet(event)


def _new_job(handler: Handler, event: Recorded, key: str) -> NewJob:
    lane = handler.lane(event, key)
    return NewJob(
        handler=handler.name,
        event_id=event.id,
        routing_key=key,
        priority=handler.priority,
        lane=(lane or NO_LANE) if handler.in_lanes() else lane,
        delay=handler.delay,
        unique_key=handler.unique_key(event, key),
    )
