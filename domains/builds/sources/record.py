"""Convert notifications to events, and record events from outside. No event is refused."""

from collections.abc import Iterable
from typing import Any

from tailrace.domains.builds.event_types.base import BuildsEvent, allow_incomplete
from tailrace.domains.builds.event_types.catalogue import by_raw_type
from tailrace.domains.builds.event_types.source_problems import Unknown
from tailrace.domains.builds.sources.log_page import Notification
from tailrace.events.publish import NewEvent, Recorded, publish


def to_event(notification: Notification, source: str) -> NewEvent:
    """Return the event for a notification."""
    return new_event(
        by_raw_type().get(notification.type),
        notification.type,
        notification.values,
        source=source,
        source_id=str(notification.number),
        occurred_at=notification.occurred_at,
    )


def new_event(
    event_type: type[BuildsEvent] | None, raw_type: str, values: Any, **origin: Any
) -> NewEvent:
    """Return the event; `builds.unknown` without a type or if the values are not a JSON object."""
    if event_type is None or not isinstance(values, dict):
        return NewEvent(Unknown, {"raw_type": raw_type, "data": values}, **origin)
    return NewEvent(event_type, values, actor=event_type.actor(values), **origin)


def record(events: Iterable[NewEvent]) -> list[Recorded]:
    """Record events from outside, in the caller's transaction. Return the events that were not
    recorded before."""
    with allow_incomplete():
        return publish(events, outside=True)
