"""Find the past events that a subscription notifies of."""

from collections.abc import Iterator
from datetime import datetime

from tailrace.events.catalog.topics import topic_names
from tailrace.events.models import Event
from tailrace.events.publish import Recorded
from tailrace.events.types import all_types
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.audience.resolve import events_of_subscription
from tailrace.subscriptions.types.subscribable import offered_channels, receiver_roles

PAGE_SIZE = 500


def events_for(
    subscription: EventSubscription, since: datetime, until: datetime
) -> Iterator[Recorded]:
    """Yield the events recorded in [since, until) that the subscription notifies of, oldest first.

    The roles are the current ones.
    """
    events = Event.objects.filter(
        type__in=types_of(subscription), recorded_at__gte=since, recorded_at__lt=until
    ).order_by("id")
    last_id = 0
    while page := list(map(Recorded.from_model, events.filter(id__gt=last_id)[:PAGE_SIZE])):
        matching = events_of_subscription(subscription.pk, page, subscription.role)
        yield from (event for event in page if event.id in matching)
        last_id = page[-1].id


def types_of(subscription: EventSubscription) -> list[str]:
    """Return the names of the event types that the subscription covers."""
    return [
        event_type.name
        for event_type in all_types()
        if subscription.role in receiver_roles(event_type)
        and subscription.channel in offered_channels(event_type)
        and subscription.event_type in topic_names(event_type)
    ]
