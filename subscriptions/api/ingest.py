"""Record the CloudEvents of a request: all of them or none."""

from collections.abc import Iterable, Sequence

from django.contrib.auth.models import User

from events.errors import PublishError, UnknownEventType
from events.models import Event
from events.publish import NewEvent, publish
from events.types import Quarantined, get_type
from events.validation import validate
from subscriptions.api.cloudevents import CloudEvent, Sent, refused
from web.api.problems import Problem
from web.api.schemas import Out


class Ingested(Out):
    """The result for one event."""

    source: str
    """As it was sent."""
    id: str
    """As it was sent."""
    recorded: bool
    """False if an event with this source and id was recorded before; nothing was done."""
    event_id: int | None
    """The id of the stored event."""


def ingest(user: User, sent: Sequence[Sent]) -> list[Ingested]:
    """Record the events under this user's sources and return a result for each, in order.

    Raises a Problem that names the refused events; then nothing is recorded.
    """
    new = [_new(user, item.event) for item in sent]
    _check_types(sent)
    try:
        recorded = {(event.source, event.source_id): event.id for event in publish(new)}
    except PublishError:
        raise _refused(sent, new) from None
    ids = recorded | _stored([event for event in new if _key(event) not in recorded])
    results = []
    for item, event in zip(sent, new, strict=True):
        key = _key(event)
        results.append(
            Ingested(
                source=item.event.source,
                id=item.event.id,
                recorded=key in recorded,
                event_id=ids.get(key),
            )
        )
        recorded.pop(key, None)  # a second event with this key in the batch is a duplicate
    return results


def _new(user: User, event: CloudEvent) -> NewEvent:
    return NewEvent(
        type=event.type,
        payload=event.data or {},
        source=f"api:{user.get_username()}:{event.source}",  # users cannot use each other's
        source_id=event.id,
        subject=event.subject,
        occurred_at=event.occurred_at,
        actor=user.get_username(),
        trace_parent=event.trace_parent,
    )


def _check_types(sent: Iterable[Sent]) -> None:
    faults = []
    for item in sent:
        try:
            if get_type(item.event.type) is Quarantined:
                raise UnknownEventType(f"{Quarantined.name} cannot be sent")
        except UnknownEventType as error:
            faults.append(item.fault("type", str(error).partition(" (`manage.py")[0]))
    if faults:
        raise refused(faults, "unknown-event-type")


def _refused(sent: Sequence[Sent], new: Sequence[NewEvent]) -> Problem:
    """Return a problem with the errors of all events; `publish` stops at the first."""
    faults = []
    for item, event in zip(sent, new, strict=True):
        try:
            validate(
                type=event.type, source=event.source, source_id=event.source_id,
                occurred_at=event.occurred_at, subject=event.subject, payload=event.payload,
                actor=event.actor, cause_id=None, trace_parent=event.trace_parent, outside=False,
            )  # fmt: skip
        except PublishError as error:
            faults.append(item.fault("data", str(error)))
    return refused(faults, "invalid")


def _key(event: NewEvent) -> tuple[str, str]:
    return event.source, event.source_id


def _stored(new: Sequence[NewEvent]) -> dict[tuple[str, str], int]:
    """Return the ids of those of the events that are stored, by source and source_id."""
    stored: dict[tuple[str, str], int] = {}
    for source in {event.source for event in new}:
        ids = [event.source_id for event in new if event.source == source]
        rows = Event.objects.filter(source=source, source_id__in=ids)
        stored |= {(source, id): pk for id, pk in rows.values_list("source_id", "pk")}
    return stored
