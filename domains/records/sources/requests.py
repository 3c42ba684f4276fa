"""Ask for sources to be read: at their regular times, and at once."""

from collections.abc import Iterable

from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.records.event_types import SourceRequested
from tailrace.domains.records.models import Source
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tailrace.jobs.operations.retry import retry_now
from tailrace.jobs.schedules import NewSchedule, create_schedules, remove_schedules

PULL = "records.pull_from_source"
REQUEST = "records.request_source"
SPREAD = 600.0
"""Seconds in which the sources of one time are requested one after the other."""


class NotActive(Exception):
    """The source is gone or switched off."""


def request_pull(source_id: int, actor: str | None = None) -> int:
    """Publish that a source is to be read, and return the event's id. NotActive if it is not read.

    If an `actor` wants it, a job that waits for its next try after an error is due at once.
    """
    with transaction.atomic():
        source = Source.objects.filter(pk=source_id).first()
        if source is None or not source.is_active:
            raise NotActive("the source is gone" if source is None else f"{source} is switched off")
        payload = {"source": source.pk, "name": source.name}
        [event] = publish(NewEvent(SourceRequested, payload, actor=actor))
        waiting = Job.objects.pending().filter(
            handler=PULL, lane=str(source.pk), due_at__gt=database_now()
        )
        if actor and (ids := list(waiting.values_list("pk", flat=True))):
            retry_now(ids, by=actor)
    return event.id


def schedule_name(source_id: int) -> str:
    return f"records:source:{source_id}"


def sync_schedules(sources: Iterable[Source]) -> None:
    """Let each of these sources have a schedule if it is active, and none otherwise."""
    rows = list(sources)
    create_schedules(
        NewSchedule(
            name=schedule_name(source.pk),
            handler=REQUEST,
            payload={"source": source.pk},
            cron=source.cron,
            spread=SPREAD,
            owner=schedule_name(source.pk),
        )
        for source in rows
        if source.is_active
    )
    if ended := [schedule_name(source.pk) for source in rows if not source.is_active]:
        remove_schedules(ended, reason="the source is switched off")
