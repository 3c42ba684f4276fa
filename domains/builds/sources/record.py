"""Convert notifications to events, and record events from outside. No event is refused."""

from collections.abc import Iterable
from dataclasses import replace

from tailrace.domains.builds.event_types.base import allow_incomplete
from tailrace.domains.builds.event_types.catalogue import by_raw_type
from tailrace.domains.builds.event_types.source_problems import Unknown
from tailrace.domains.builds.sources.log_page import Notification
from tailrace.events.publish import NewEvent, Recorded, publish


def to_event(notification: Notification, source: str) -> NewEvent:
    """Return the event for a notification: of its own type, or of the type `builds.unknown`."""
    event_type, values = by_raw_type().get(notification.type), notification.values
    if event_type is None or not isinstance(values, dict):
        event = NewEvent(Unknown, {"raw_type": notification.type, "data": values})
    else:
        event = NewEvent(event_type, values, actor=event_type.actor(values))
    return replace(
        event,
        source=source,
        source_id=str(notification.number),
        occurred_at=notification.occurred_at,
    )


def record(events: Iterable[NewEvent]) -> list[Recorded]:
    """Record events from outside, in the caller's transaction. Return the events that were not
    recorded before."""
    with allow_incomplete():
        return publish(events, outside=True)
