"""Count the recent events that a subscription would notify of, before or after it is saved."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import OperationalError, transaction
from psycopg.errors import LockNotAvailable, QueryCanceled

from tailrace.db import clock
from tailrace.db.limits import time_limits
from tailrace.events.models import Event
from tailrace.events.privacy.visibility import may_read
from tailrace.events.publish import Recorded
from tailrace.subscriptions.models import EventSubscription
from tailrace.subscriptions.notifications.audience.history import newest_ids, types_of
from tailrace.subscriptions.notifications.audience.resolve import events_of_subscription

MAX_DAYS = 30
MAX_EVENTS = 500
"""The newest events, which are examined. Their roles are called for each event."""
PAGE_SIZE = 50
MAX_SECONDS = 1.0
"""When this time has passed, no further page is examined."""
STATEMENT_SECONDS = 1.0
"""The limit of one statement, and of one wait for a lock."""
MAX_SHOWN = 20
KEY = ("event_type", "role", "channel", "user", "group")
COST = 20
"""A preview counts as this number of requests towards the rate limit."""


@dataclass(slots=True)
class Preview:
    """The events that a subscription notifies of: their number, and the first of them."""

    since: datetime
    until: datetime
    whole: bool
    """Whether all requested days were examined; if not, `since` is later than requested."""
    count: int
    first: list[Recorded]


def preview(subscription: EventSubscription, days: float, viewer: User) -> Preview:
    """Examine the last `days` days (MAX_DAYS at most), without events the viewer may not read.

    An unsaved subscription is examined as if it replaced the receiver's own; it is not stored. If a
    statement exceeds its time limit, the events found so far are returned.
    """
    until = clock.now()
    since = until - timedelta(days=min(days, MAX_DAYS))
    examined = Preview(since=until, until=until, whole=False, count=0, first=[])
    saved_id = subscription.pk
    try:
        with time_limits(STATEMENT_SECONDS, STATEMENT_SECONDS):
            if saved_id is None:  # it is saved over the receiver's own row, if there is one
                key = {name: getattr(subscription, name) for name in KEY}
                existing = EventSubscription.objects.filter(**key).first()
                subscription.pk = existing and existing.pk
                subscription.save()
            _examine(subscription, since, viewer, examined)
            transaction.set_rollback(saved_id is None)
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled | LockNotAvailable):
            raise
    finally:
        subscription.pk = saved_id
    return examined


def _examine(
    subscription: EventSubscription, start: datetime, viewer: User, examined: Preview
) -> None:
    """Fill `examined`, page by page from the newest event backwards."""
    login = subscription.user.get_username() if subscription.user else None
    deadline = time.monotonic() + MAX_SECONDS
    ids = newest_ids(types_of(subscription), MAX_EVENTS)
    for offset in range(0, len(ids), PAGE_SIZE):
        page = Event.objects.filter(
            pk__in=ids[offset : offset + PAGE_SIZE],
            recorded_at__gte=start,
            recorded_at__lt=examined.until,
        )
        events = list(map(Recorded.from_model, page.order_by("id")))
        if not events:
            break
        readable = may_read(viewer, events)
        visible = [event for event in events if event.id in readable]
        matching = events_of_subscription(subscription.pk, visible, subscription.role, login)
        examined.count += len(matching)
        shown = [event for event in events if event.id in matching]
        examined.first = [*shown, *examined.first][:MAX_SHOWN]
        examined.since = max(start, events[0].recorded_at)
        if offset + PAGE_SIZE >= MAX_EVENTS or time.monotonic() > deadline:
            return
    examined.since, examined.whole = start, True
