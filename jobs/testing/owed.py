"""Assert which jobs are owed: those that wait, are pending or run."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from tailrace.events.publish import Recorded
from tailrace.jobs import registry
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job
from tailrace.jobs.states import LIVE

SHOWN = 10
"""Jobs that a message shows."""
WIDTH = 100
"""Characters that it shows of a payload."""


def assert_owed(
    handler: type[Handler] | str,
    *,
    event: Recorded | int | None = None,
    payload: Mapping[str, Any] | None = None,
    routing_key: str | None = None,
    count: int | None = None,
) -> Job:
    """Assert that a job of this handler is owed, and return it: the oldest of several.

    `event`: because of this event, or the event of this id. `payload`: these keys of the job's
    payload have these values. `count`: so many jobs, no more and no less. The message of the
    AssertionError shows what is owed instead.
    """
    jobs = _matching(handler, event, payload, routing_key)
    number = jobs.count()
    if number == 0 or (count is not None and number != count):
        wanted = _in_words(handler, event, payload, routing_key)
        expected = "" if count is None else f"{count} "
        raise AssertionError(f"owed: {number}, expected: {expected or 'a '}{wanted}\n{_instead()}")
    return jobs.order_by("id")[0]


def assert_not_owed(
    handler: type[Handler] | str,
    *,
    event: Recorded | int | None = None,
    payload: Mapping[str, Any] | None = None,
    routing_key: str | None = None,
) -> None:
    """Assert that no such job is owed; see `assert_owed`."""
    if job := _matching(handler, event, payload, routing_key).order_by("id").first():
        wanted = _in_words(handler, event, payload, routing_key)
        raise AssertionError(f"owed, and should not be: {wanted}\n  {_line(job)}")


def name_of(handler: type[Handler] | str) -> str:
    """Return a handler's name. Raises UnknownHandler, with "did you mean"."""
    return registry.get(handler if isinstance(handler, str) else handler.name).name


def _matching(
    handler: type[Handler] | str,
    event: Recorded | int | None,
    payload: Mapping[str, Any] | None,
    routing_key: str | None,
) -> QuerySet[Job]:
    jobs = Job.objects.filter(handler=name_of(handler), state__in=LIVE)
    if event is not None:
        jobs = jobs.filter(event_id=_id(event))
    if payload is not None:
        jobs = jobs.filter(payload__contains=dict(payload))
    return jobs if routing_key is None else jobs.filter(routing_key=routing_key)


def _id(event: Recorded | int) -> int:
    return event if isinstance(event, int) else event.id


def _in_words(
    handler: type[Handler] | str,
    event: Recorded | int | None,
    payload: Mapping[str, Any] | None,
    routing_key: str | None,
) -> str:
    parts = [f"job of {name_of(handler)}"]
    if event is not None:
        parts.append(f"because of event {_id(event)}")
    if payload is not None:
        parts.append(f"with {dict(payload)!r} in its payload")
    if routing_key is not None:
        parts.append(f"with routing key {routing_key!r}")
    return " ".join(parts)


def _instead() -> str:
    """Describe the newest jobs there are, those that are done, too."""
    jobs = list(Job.objects.select_related("event").order_by("-id")[: SHOWN + 1])
    if not jobs:
        return "There is no job at all: was an event published whose type is in the handler's `on`?"
    lines = [f"  {_line(job)}" for job in jobs[:SHOWN]]
    more = ["  and older ones"] if len(jobs) > SHOWN else []
    return "\n".join(["Jobs, the newest first:", *lines, *more])


def _line(job: Job) -> str:
    cause = f" because of event {job.event_id} ({job.event.type})" if job.event else ""
    key = f" routing key {job.routing_key!r}" if job.routing_key else ""
    payload = "" if job.payload is None else f" payload {job.payload!r}"[:WIDTH]
    error = f": {job.error}"[:WIDTH] if job.error else ""
    return f"job {job.pk} of {job.handler}{cause}{key}{payload}, {job.state}{error}"
