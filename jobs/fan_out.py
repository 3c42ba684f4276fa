"""fan out: one job per handler and routing key that an event owes, in the event's transaction."""

from collections.abc import Iterable, Sequence
from typing import Any

import structlog
from django.db import DatabaseError
from django.dispatch import receiver

from events.prepare import clean
from events.publish import Recorded
from events.signals import published
from jobs import registry, wake
from jobs.handler import NO_LANE, Handler
from jobs.insert import NewJob, insert_jobs
from jobs.states import State

log = structlog.get_logger(__name__)


@receiver(published, dispatch_uid="jobs.fan_out")
def fan_out(events: Sequence[Recorded], **kwargs: Any) -> None:
    """Insert the jobs that these events owe, and wake their queues once they are committed."""
    jobs = [job for event in events for job in owed(event)]
    insert_jobs(jobs)
    wake.on_commit({job.handler for job in jobs if job.delay <= 0})


def owed(event: Recorded, handlers: Iterable[Handler] | None = None) -> list[NewJob]:
    """Return the jobs that the event owes to `handlers` (None: to all that want its type)."""
    candidates = registry.wanting(event.type) if handlers is None else handlers
    return [job for handler in candidates for job in _owed_to(handler, event)]


def _owed_to(handler: Handler, event: Recorded) -> list[NewJob]:
    """A handler that cannot say what it is owed must not keep the event from being recorded: the
    failure is kept as a failed job, for an operator to see."""
    try:
        if not handler.wants(event):
            return []
        return [_new_job(handler, event, key) for key in handler.routing_keys(event)]
    except DatabaseError:
        raise
    except Exception as error:
        log.exception("fan_out.failed", queue=handler.name, event_id=event.id)
        reason = f"its jobs could not be worked out: {type(error).__name__}: {error}"
        return [
            NewJob(
                handler.name,
                event_id=event.id,
                state=State.FAILED.value,
                error=clean(reason)[0][:2000],
            )
        ]


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
