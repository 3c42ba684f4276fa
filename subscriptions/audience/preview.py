"""Count the events of the last days that a subscription would lead to, saved or not."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from db import clock
from db.query import query
from events.models import Event
from events.publish import Recorded
from subscriptions.audience.history import types_of
from subscriptions.audience.resolve import events_of_subscription
from subscriptions.models import EventSubscription

MAX_DAYS = 30
MAX_EVENTS = 2000
"""Events that are examined: the newest."""
PAGE_SIZE = 200
MAX_SECONDS = 3.0
"""After so long no further page is examined."""
MAX_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Preview:
    """How many events a subscription leads to, and the first of them."""

    since: datetime
    until: datetime
    whole: bool
    """Whether all the requested days were examined; else `since` is later."""
    count: int
    first: list[Recorded]


def preview(subscription: EventSubscription, days: float) -> Preview:
    """Look back over so many days, MAX_DAYS at most.

    An unsaved subscription is examined as if it stood in the place of the receiver's own row of
    this type, role and channel; nothing of it is kept.
    """
    if subscription.pk is not None:
        return _examine(subscription, days)
    with transaction.atomic():
        existing = EventSubscription.objects.filter(
            event_type=subscription.event_type,
            role=subscription.role,
            channel=subscription.channel,
            user=subscription.user,
            group=subscription.group,
        )
        subscription.pk = existing.values_list("pk", flat=True).first()
        subscription.save()
        result = _examine(subscription, days)
        transaction.set_rollback(True)
    subscription.pk = None
    return result


def _examine(subscription: EventSubscription, days: float) -> Preview:
    """Go back from the newest event, page by page."""
    until = clock.now()
    start = since = until - timedelta(days=min(days, MAX_DAYS))
    deadline = time.monotonic() + MAX_SECONDS
    rows = query(_NEWEST, types=types_of(subscription), limit=MAX_EVENTS)
    ids = [id for (id,) in rows]
    count, first = 0, list[Recorded]()
    for offset in range(0, len(ids), PAGE_SIZE):
        page = Event.objects.filter(
            pk__in=ids[offset : offset + PAGE_SIZE], recorded_at__gte=start, recorded_at__lt=until
        )
        events = list(map(Recorded.from_model, page.order_by("id")))
        if not events:
            break
        matching = events_of_subscription(subscription.pk, events, subscription.role)
        count += len(matching)
        first = [*(event for event in events if event.id in matching), *first][:MAX_SHOWN]
        if offset + PAGE_SIZE >= MAX_EVENTS or time.monotonic() > deadline:
            since = max(start, events[0].recorded_at)
            break
    return Preview(since, until, since == start, count, first)


# Type by type along the index (type, id): its cost does not grow with the history.
_NEWEST = """
SELECT id FROM unnest(%(types)s::text[]) AS t (type), LATERAL (
  SELECT id FROM events_event e WHERE e.type = t.type ORDER BY id DESC LIMIT %(limit)s) AS newest
ORDER BY id DESC LIMIT %(limit)s
"""
