"""Assert which jobs are owed: waiting, pending and running jobs."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from tailrace.events.publish import Recorded
from tailrace.jobs.engine import registry
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.states import LIVE

SHOWN = 10
"""The number of jobs in a message."""
WIDTH = 100
"""The maximum length of a payload or an error in a message."""


def assert_owed(
    handler: type[Handler] | str,
    *,
    event: Recorded | int | None = None,
    payload: Mapping[str, Any] | None = None,
    routing_key: str | None = None,
    count: int | None = None,
) -> Job:
    """Assert that a job of this handler is owed, and return it; if there are several, the oldest.

    `event` is the job's event or the event's id. `payload` has keys and values that must be in the
    job's payload. `count` is the exact number of such jobs.
    """
    jobs, wanted = _matching(handler, event, payload, routing_key)
    number = jobs.count()
    if number == 0 or (count is not None and number != count):
        expected = "a" if count is None else count
        raise AssertionError(f"owed: {number}, expected: {expected} {wanted}\n{_existing_jobs()}")
    return jobs.order_by("id")[0]


def assert_not_owed(
    handler: type[Handler] | str,
    *,
    event: Recorded | int | None = None,
    payload: Mapping[str, Any] | None = None,
    routing_key: str | None = None,
) -> None:
    """Assert that no such job is owed. It takes the same parameters as `assert_owed`."""
    jobs, unwanted = _matching(handler, event, payload, routing_key)
    if job := jobs.order_by("id").first():
        raise AssertionError(f"owed, but should not be: {unwanted}\n  {_line(job)}")


def name_of(handler: type[Handler] | str) -> str:
    """Return a handler's name. Raises UnknownHandler with "did you mean"."""
    return registry.get(handler if isinstance(handler, str) else handler.name).name


def _matching(
    handler: type[Handler] | str,
    event: Recorded | int | None,
    payload: Mapping[str, Any] | None,
    routing_key: str | None,
) -> tuple[QuerySet[Job], str]:
    """Return the live jobs that match, and a description of the conditions."""
    name = name_of(handler)
    jobs, parts = Job.objects.filter(handler=name, state__in=LIVE), [f"job of {name}"]
    if event is not None:
        id = event if isinstance(event, int) else event.id
        jobs = jobs.filter(event_id=id)
        parts.append(f"because of event {id}")
    if payload is not None:
        jobs = jobs.filter(payload__contains=dict(payload))
        parts.append(f"with {dict(payload)!r} in its payload")
    if routing_key is not None:
        jobs = jobs.filter(routing_key=routing_key)
        parts.append(f"with routing key {routing_key!r}")
    return jobs, " ".join(parts)


def _existing_jobs() -> str:
    """Return a description of the newest jobs, including finished jobs."""
    jobs = list(Job.objects.select_related("event").order_by("-id")[: SHOWN + 1])
    if not jobs:
        return "There are no jobs: was an event published whose type is in the handler's `on`?"
    lines = [f"  {_line(job)}" for job in jobs[:SHOWN]]
    more = ["  and older jobs"] if len(jobs) > SHOWN else []
    return "\n".join(["Existing jobs, newest first:", *lines, *more])


def _line(job: Job) -> str:
    cause = f" because of event {job.event_id} ({job.event.type})" if job.event else ""
    key = f" routing key {job.routing_key!r}" if job.routing_key else ""
    payload = "" if job.payload is None else f" payload {job.payload!r}"[:WIDTH]
    error = f": {job.error}"[:WIDTH] if job.error else ""
    return f"job {job.pk} of {job.handler}{cause}{key}{payload}, {job.state}{error}"
