"""Turns notifications into events, and records them: whatever comes, nothing is refused."""

from collections.abc import Iterable

from domains.builds.event_types import Unknown, as_it_came, by_raw_type
from domains.builds.sources.page import Notification
from events.publish import NewEvent, Recorded, publish


def to_event(notification: Notification, source: str) -> NewEvent:
    """Return the event of a notification: of its own type, or `builds.unknown` as it came."""
    found = by_raw_type().get(notification.type)
    number = str(notification.number)
    if found is None or not isinstance(notification.values, dict):
        return NewEvent(
            Unknown,
            {"raw_type": notification.type, "data": notification.values},
            source=source,
            source_id=number,
            occurred_at=notification.occurred_at,
        )
    return NewEvent(
        found,
        notification.values,
        source=source,
        source_id=number,
        occurred_at=notification.occurred_at,
        actor=found.actor(notification.values),
    )


def record(events: Iterable[NewEvent]) -> list[Recorded]:
    """Record events from outside in the caller's transaction; those known already are left out."""
    with as_it_came():
        return publish(events, outside=True)
