"""Record the CloudEvents of a request: all of them or none."""

from collections.abc import Iterable, Iterator, Sequence

from tailrace.events.errors import InvalidPayload, PublishError, UnknownEventType
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.events.types import EventType, get_type
from tailrace.events.validation import validate
from tailrace.subscriptions.api.cloudevents import CloudEvent, Sent, refused
from tailrace.web import tokens
from tailrace.web.api.auth import Caller
from tailrace.web.api.faults import Fault
from tailrace.web.api.problems import Problem
from tailrace.web.api.schemas import Out
from tailrace.web.models import ApiToken

ATTRIBUTES = {"payload": "data", "source_id": "id", "occurred_at": "time"}
"""What fields of an event are called in a CloudEvent, where that differs."""


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


def ingest(caller: Caller, items: Sequence[Sent]) -> list[Ingested]:
    """Record the events under the source of the caller's token; return a result for each, in order.

    Raises a Problem that names the refused events; then nothing is recorded.
    """
    token = caller.token
    if token is None:
        raise Problem(403, "send a token: its event types and its source say what it may record")
    types = _types(items)
    _check_rights(token, items, types)
    new = [_new(token, item.event) for item in items]
    try:
        recorded = {(event.source, event.source_id): event.id for event in publish(new)}
    except PublishError:
        raise _refused(items, new) from None
    ids = recorded | _stored([event for event in new if _key(event) not in recorded])
    results = []
    for item, event in zip(items, new, strict=True):
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


def _new(token: ApiToken, event: CloudEvent) -> NewEvent:
    login = token.user.get_username()
    return NewEvent(
        type=event.type,
        payload=event.data or {},
        source=f"api:{login}:{token.event_source}",  # users cannot use each other's
        source_id=event.id,
        subject=event.subject,
        occurred_at=event.occurred_at,
        actor=login,
        trace_parent=event.trace_parent,
    )


def _types(items: Iterable[Sent]) -> list[type[EventType]]:
    """Return the type of each event; a Problem names the events whose type does not exist."""
    types, faults = [], []
    for item in items:
        try:
            types.append(get_type(item.event.type))
        except UnknownEventType as error:
            faults.append(item.fault(str(error).partition(" (`manage.py")[0], "type"))
    if faults:
        raise refused(faults, "unknown-event-type")
    return types


def _check_rights(token: ApiToken, items: Sequence[Sent], types: Sequence[type[EventType]]) -> None:
    """Refuse events of types, sources and users that are not the token's."""
    faults = [
        fault
        for item, event_type in zip(items, types, strict=True)
        for fault in _not_allowed(token, item, event_type)
    ]
    if faults:
        raise refused(faults, "event-not-allowed", status=403)


def _not_allowed(token: ApiToken, item: Sent, event_type: type[EventType]) -> Iterator[Fault]:
    event, login = item.event, token.user.get_username()
    if not event_type.api_records:
        yield item.fault(f"{event.type} is recorded by the platform alone", "type")
    elif not tokens.may_record(token, event_type):
        given = ", ".join(token.event_types) or "no event type; make another one"
        yield item.fault(f"this token may not record {event.type!r}; it was given {given}", "type")
    if event.source != token.event_source:
        detail = f"the source of this token's events is {token.event_source!r}, not"
        yield item.fault(f"{detail} {event.source[:50]!r}", "source")
    if others := sorted(event_type.actors(event.data or {}) - {login}):
        detail = f"names {others[0][:50]!r} as the user who did it; this token acts for {login!r}"
        yield item.fault(detail, "data")


def _refused(items: Sequence[Sent], new: Sequence[NewEvent]) -> Problem:
    """Return a problem with the errors of all events; `publish` stops at the first."""
    faults = []
    for item, event in zip(items, new, strict=True):
        try:
            validate(
                type=event.type, source=event.source, source_id=event.source_id,
                occurred_at=event.occurred_at, subject=event.subject, payload=event.payload,
                actor=event.actor, cause_id=None, trace_parent=event.trace_parent, outside=False,
            )  # fmt: skip
        except PublishError as error:
            faults += _faults(item, error)
    return refused(faults, "invalid")


def _faults(item: Sent, error: PublishError) -> list[Fault]:
    fields = error.fields if isinstance(error, InvalidPayload) else []
    if not fields:
        return [item.fault(str(error), "data")]
    return [
        item.fault(field.detail, ATTRIBUTES.get(name := str(field.path[0]), name), *field.path[1:])
        for field in fields
    ]


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
