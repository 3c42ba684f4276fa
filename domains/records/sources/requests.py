"""Request pulls of sources, and maintain the schedules of regular pulls."""

from collections.abc import Iterable

from django.db import transaction

from tailrace.db.query import database_now
from tailrace.domains.records.event_types import SourceRequested
from tailrace.domains.records.models import Source
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.models import Job
from tailrace.jobs.operations.retry import retry_now
from tailrace.jobs.operations.schedules import NewSchedule, create_schedules, remove_schedules

PULL = "records.pull_from_source"
REQUEST = "records.request_source"
SPREAD = 600.0
"""The spread in seconds of sources that have the same cron expression."""


class NotActive(Exception):
    """The source is deleted or paused."""


def request_pull(source_id: int, actor: str | None = None) -> int:
    """Publish a request to read the source; return the event's id. Raises NotActive.

    With an `actor`, a job of the source that waits for its next try becomes due at once.
    """
    with transaction.atomic():
        source = Source.objects.filter(pk=source_id).first()
        if source is None or not source.is_active:
            raise NotActive("the source was deleted" if source is None else f"{source} is paused")
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
    """Create or update the schedules of active sources; remove the schedules of paused sources."""
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
    if paused := [schedule_name(source.pk) for source in rows if not source.is_active]:
        remove_schedules(paused, reason="the source is paused")
