"""ingest: record the CloudEvents of a caller: all of a request, or none."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib.auth.models import User

from events.errors import PublishError, UnknownEventType
from events.models import Event
from events.prepare import prepare
from events.publish import NewEvent, publish
from events.types import Quarantined, get_type
from subscriptions.api.cloudevents import CloudEvent, Sent, refused
from subscriptions.api.problems import Problem
from subscriptions.api.shapes import Out


class Ingested(Out):
    """What became of one event."""

    source: str
    """As it was sent."""
    id: str
    """As it was sent."""
    recorded: bool
    """False: it was known already, by its source and id, and nothing was done."""
    event_id: int | None
    """Its number here."""


def ingest(user: User, sent: Sequence[Sent]) -> list[Ingested]:
    """Record the events as facts from this user's sources; say what became of each, in order.

    Raises a Problem that names those that are refused; then nothing is recorded.
    """
    new = [_new(user, one.event) for one in sent]
    _check_types(sent)
    try:
        recorded = {(one.source, one.source_id): one.id for one in publish(new)}
    except PublishError:
        raise _refused(sent, new) from None
    known = recorded | _known([one for one in new if (one.source, one.source_id) not in recorded])
    answers = []
    for one, kept in zip(sent, new, strict=True):
        key = (kept.source, kept.source_id)
        answers.append(
            Ingested(
                source=one.event.source,
                id=one.event.id,
                recorded=key in recorded,
                event_id=known.get(key),
            )
        )
        recorded.pop(key, None)  # the second one of its id in a batch was known by then
    return answers


def source_of(user: User, source: str) -> str:
    """Return the source under which it is kept: nobody can speak for another's."""
    return f"api:{user.get_username()}:{source}"


def _new(user: User, event: CloudEvent) -> NewEvent:
    return NewEvent(
        type=event.type,
        payload=event.data or {},
        source=source_of(user, event.source),
        source_id=event.id,
        subject=event.subject,
        occurred_at=event.occurred_at,
        actor=user.get_username(),
        trace_parent=event.trace_parent,
    )


def _check_types(sent: Iterable[Sent]) -> None:
    faults = []
    for one in sent:
        try:
            if get_type(one.event.type) is Quarantined:
                raise UnknownEventType(f"{Quarantined.name} is not to be sent")
        except UnknownEventType as error:
            faults.append(one.fault("type", str(error).partition(" (`manage.py")[0]))
    if faults:
        raise refused(faults, "unknown-event-type")


def _refused(sent: Sequence[Sent], new: Sequence[NewEvent]) -> Problem:
    """Name each event that its type refuses: publishing stopped at the first."""
    faults = []
    for one, kept in zip(sent, new, strict=True):
        try:
            prepare(
                type=kept.type, payload=kept.payload, subject=kept.subject, outside=False,
                **_envelope(kept),
            )  # fmt: skip
        except PublishError as error:
            faults.append(one.fault("data", str(error)))
    return refused(faults, "invalid")


def _envelope(one: NewEvent) -> dict[str, Any]:
    return {
        "source": one.source,
        "source_id": one.source_id,
        "occurred_at": one.occurred_at,
        "actor": one.actor,
        "cause_id": None,
        "trace_parent": one.trace_parent,
    }


def _known(new: Sequence[NewEvent]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = {}
    for source in {one.source for one in new}:
        ids = [one.source_id for one in new if one.source == source]
        rows = Event.objects.filter(source=source, source_id__in=ids)
        found |= {(source, id): pk for id, pk in rows.values_list("source_id", "pk")}
    return found
