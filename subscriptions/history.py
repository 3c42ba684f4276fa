"""history: what a subscription has brought, or would have: the other way to ask the audience."""

from collections.abc import Iterator
from datetime import datetime

from events.models import Event
from events.publish import Recorded
from events.types import EventType, all_types
from subscriptions.audible import allows, receiver_roles
from subscriptions.audience import brought_by
from subscriptions.lineage import lineage
from subscriptions.models import EventSubscription
from subscriptions.recall import recall

PAGE = 500


def events_for(
    subscription: EventSubscription, since: datetime, until: datetime
) -> Iterator[Recorded]:
    """Yield the events recorded in [since, until) that somebody hears by this row, oldest first.

    The roles are asked as they are held now.
    """
    events = Event.objects.filter(
        type__in=types_of(subscription), recorded_at__gte=since, recorded_at__lt=until
    ).order_by("id")
    beyond = 0
    while page := [recall(event) for event in events.filter(id__gt=beyond)[:PAGE]]:
        brought = brought_by(subscription.pk, page, subscription.role)
        yield from (event for event in page if event.id in brought)
        beyond = page[-1].id


def types_of(subscription: EventSubscription) -> list[str]:
    """Return the names of the event types that the row speaks of."""
    return [one.name for one in all_types() if _concerns(subscription, one)]


def _concerns(subscription: EventSubscription, event_type: type[EventType]) -> bool:
    return (
        subscription.role in receiver_roles(event_type)
        and allows(event_type, subscription.channel)
        and subscription.event_type in lineage(event_type)
    )
