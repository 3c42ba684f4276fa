"""Record the CloudEvents of a request: all events or none."""

from collections.abc import Iterable, Iterator, Sequence

from tailrace.events.errors import InvalidPayload, PublishError, UnknownEventType
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.events.publishing.validation import validate
from tailrace.events.types import EventType, get_type
from tailrace.subscriptions.api.recording.cloudevents import CloudEvent, ReceivedEvent, refused
from tailrace.web.accounts import tokens
from tailrace.web.api.auth import Caller
from tailrace.web.api.faults import Fault
from tailrace.web.api.problems import Problem
from tailrace.web.api.schemas import Out
from tailrace.web.models import ApiToken

ATTRIBUTES = {"payload": "data", "source_id": "id", "occurred_at": "time"}
"""The names of an event's fields in a CloudEvent, if they differ."""


class Ingested(Out):
    """The result for one event."""

    source: str
    """The source in the request."""
    id: str
    """The id in the request."""
    recorded: bool
    """False if an event with this source and id was already recorded."""
    event_id: int | None
    """The id of the stored event."""


def ingest(caller: Caller, items: Sequence[ReceivedEvent]) -> list[Ingested]:
    """Record the events under the source of the caller's token; return their results in order. If
    an event is refused, record nothing, and raise a Problem with the errors."""
    token = caller.token
    if token is None:
        raise Problem(403, "send a token: its event types and source determine what you may record")
    types = _event_types(items)
    _check_rights(token, items, types)
    new = [_new_event(token, item.event) for item in items]
    try:
        recorded = {(event.source, event.source_id): event.id for event in publish(new)}
    except PublishError:
        raise _invalid_events(items, new) from None
    ids = recorded | _stored_ids([event for event in new if _key(event) not in recorded])
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


def _new_event(token: ApiToken, event: CloudEvent) -> NewEvent:
    login = token.user.get_username()
    return NewEvent(
        type=event.type,
        payload=event.data or {},
        source=f"api:{login}:{token.event_source}",  # a user cannot use another user's source
        source_id=event.id,
        subject=event.subject,
        occurred_at=event.occurred_at,
        actor=login,
        trace_parent=event.trace_parent,
    )


def _event_types(items: Iterable[ReceivedEvent]) -> list[type[EventType]]:
    """Return the type of each event, or raise a Problem with all unknown types."""
    types, faults = [], []
    for item in items:
        try:
            types.append(get_type(item.event.type))
        except UnknownEventType as error:
            faults.append(item.fault(str(error).partition(" (`manage.py")[0], "type"))
    if faults:
        raise refused(faults, "unknown-event-type")
    return types


def _check_rights(
    token: ApiToken, items: Sequence[ReceivedEvent], types: Sequence[type[EventType]]
) -> None:
    """Raise a Problem with all events whose type, source or user the token does not allow."""
    faults = [
        fault
        for item, event_type in zip(items, types, strict=True)
        for fault in _not_allowed(token, item, event_type)
    ]
    if faults:
        raise refused(faults, "event-not-allowed", status=403)


def _not_allowed(
    token: ApiToken, item: ReceivedEvent, event_type: type[EventType]
) -> Iterator[Fault]:
    event, login = item.event, token.user.get_username()
    if not event_type.api_records:
        yield item.fault(f"only the platform may record {event.type}", "type")
    elif not tokens.may_record(token, event_type):
        allowed = ", ".join(token.event_types) or "no event type (create another token)"
        yield item.fault(f"this token may not record {event.type!r}, only {allowed}", "type")
    if event.source != token.event_source:
        detail = f"the source of this token's events is {token.event_source!r}, not"
        yield item.fault(f"{detail} {event.source[:50]!r}", "source")
    if others := sorted(event_type.actors(event.data or {}) - {login}):
        detail = f"names {others[0][:50]!r} as the acting user, but this token acts for {login!r}"
        yield item.fault(detail, "data")


def _invalid_events(items: Sequence[ReceivedEvent], new: Sequence[NewEvent]) -> Problem:
    """Return a problem with the errors of all events; `publish` reports only the first."""
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


def _faults(item: ReceivedEvent, error: PublishError) -> list[Fault]:
    fields = error.fields if isinstance(error, InvalidPayload) else []
    if not fields:
        return [item.fault(str(error), "data")]
    return [
        item.fault(field.detail, ATTRIBUTES.get(name := str(field.path[0]), name), *field.path[1:])
        for field in fields
    ]


def _key(event: NewEvent) -> tuple[str, str]:
    return event.source, event.source_id


def _stored_ids(new: Sequence[NewEvent]) -> dict[tuple[str, str], int]:
    """Return the ids of the events that are already stored, by source and source_id."""
    stored: dict[tuple[str, str], int] = {}
    for source in {event.source for event in new}:
        ids = [event.source_id for event in new if event.source == source]
        rows = Event.objects.filter(source=source, source_id__in=ids)
        stored |= {(source, id): pk for id, pk in rows.values_list("source_id", "pk")}
    return stored
