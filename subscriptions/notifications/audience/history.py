"""Find the past events that a subscription notifies of."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from tailrace.db.query import query
from tailrace.events.catalog.topics import topic_names
from tailrace.events.models import Event
from tailrace.events.publish import Recorded
from tailrace.events.types import all_types
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.audience.resolve import events_of_subscription
from tailrace.subscriptions.types.subscribable import offered_channels, receiver_roles

PAGE_SIZE = 500
LAST_ID = 2**63 - 1
# Reads the index (type, id) once per type, and then only one page of rows. With `type = t.type`
# instead of row comparisons, the planner may choose the primary key, and then scans the whole table
# for a type that has few events.
_NEWEST_IDS = """
SELECT newest.id
FROM unnest(%(types)s::text[]) AS t (type), LATERAL (
  SELECT id FROM tailrace_events_event
  WHERE (type, id) < (t.type, %(before)s) AND (type, id) > (t.type, 0)
  ORDER BY type DESC, id DESC LIMIT %(limit)s) AS newest
ORDER BY newest.id DESC LIMIT %(limit)s
"""
_NEWEST_EVENTS = f"""
SELECT e.id, e.recorded_at, e.type, e.subject
FROM ({_NEWEST_IDS}) AS page JOIN tailrace_events_event e ON e.id = page.id
ORDER BY e.id DESC
"""


def events_for(
    subscription: EventSubscription, since: datetime, until: datetime
) -> Iterator[Recorded]:
    """Yield the events in [since, until) of which the subscription notifies by the current roles,
    oldest first."""
    events = Event.objects.filter(
        type__in=types_of(subscription), recorded_at__gte=since, recorded_at__lt=until
    ).order_by("id")
    last_id = 0
    while page := list(map(Recorded.from_model, events.filter(id__gt=last_id)[:PAGE_SIZE])):
        matching = events_of_subscription(subscription.pk, page, subscription.role)
        yield from (event for event in page if event.id in matching)
        last_id = page[-1].id


def newest_events(types: Sequence[str], limit: int, before: int = LAST_ID) -> list[Any]:
    """Return id, time, type and subject of the newest events of these types, before an id."""
    return query(_NEWEST_EVENTS, types=list(types), before=before, limit=limit)


def newest_ids(types: Sequence[str], limit: int) -> list[int]:
    """Return the ids of the newest events of these types."""
    return [id for (id,) in query(_NEWEST_IDS, types=list(types), before=LAST_ID, limit=limit)]


def types_of(subscription: EventSubscription) -> list[str]:
    """Return the names of the event types that the subscription covers."""
    return [
        event_type.name
        for event_type in all_types()
        if subscription.role in receiver_roles(event_type)
        and subscription.channel in offered_channels(event_type)
        and subscription.event_type in topic_names(event_type)
    ]
