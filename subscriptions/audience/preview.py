"""Count the events of the last days that a subscription would lead to, saved or not."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import OperationalError, transaction
from psycopg.errors import LockNotAvailable, QueryCanceled

from tailrace.db import clock
from tailrace.db.limits import time_limits
from tailrace.db.query import query
from tailrace.events.models import Event
from tailrace.events.publish import Recorded
from tailrace.events.visibility import may_read
from tailrace.subscriptions.audience.history import types_of
from tailrace.subscriptions.audience.resolve import events_of_subscription
from tailrace.subscriptions.models import EventSubscription

MAX_DAYS = 30
MAX_EVENTS = 500
"""Events that are examined: the newest. Their roles are asked one by one."""
PAGE_SIZE = 50
MAX_SECONDS = 1.0
"""After so long no further page is examined."""
STATEMENT_SECONDS = 1.0
"""For one statement, and for waiting for a lock."""
MAX_SHOWN = 20
COST = 20
"""Ordinary requests that a preview counts as."""


@dataclass(slots=True)
class Preview:
    """How many events a subscription leads to, and the first of them."""

    since: datetime
    until: datetime
    whole: bool
    """Whether all the requested days were examined; else `since` is later."""
    count: int
    first: list[Recorded]


def preview(subscription: EventSubscription, days: float, viewer: User) -> Preview:
    """Look back over so many days, MAX_DAYS at most; leave out what the viewer may not read.

    An unsaved subscription is examined as if it stood in the place of the receiver's own row of
    this type, role and channel; nothing of it is kept. A statement that takes too long ends it:
    then what was shown until then is returned.
    """
    until = clock.now()
    since = until - timedelta(days=min(days, MAX_DAYS))
    examined = Preview(since=until, until=until, whole=False, count=0, first=[])
    saved_as = subscription.pk
    try:
        with time_limits(STATEMENT_SECONDS, STATEMENT_SECONDS):
            if saved_as is None:
                _save_instead(subscription)
            _examine(subscription, since, viewer, examined)
            transaction.set_rollback(saved_as is None)
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled | LockNotAvailable):
            raise
    finally:
        subscription.pk = saved_as
    return examined


def _save_instead(subscription: EventSubscription) -> None:
    """Save it in the place of the receiver's own row."""
    existing = EventSubscription.objects.filter(
        event_type=subscription.event_type,
        role=subscription.role,
        channel=subscription.channel,
        user=subscription.user,
        group=subscription.group,
    )
    subscription.pk = existing.values_list("pk", flat=True).first()
    subscription.save()


def _examine(
    subscription: EventSubscription, start: datetime, viewer: User, examined: Preview
) -> None:
    """Go back from the newest event, page by page."""
    login = subscription.user.get_username() if subscription.user else None
    deadline = time.monotonic() + MAX_SECONDS
    rows = query(_NEWEST, types=types_of(subscription), limit=MAX_EVENTS, beyond=2**63 - 1)
    ids = [id for (id,) in rows]
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


# Type by type along the index (type, id): its cost does not grow with the history. Rows are
# compared, since by `type = t.type` the primary key would do as well, and is read from end to end
# for a type of which there are few events.
_NEWEST = """
SELECT id FROM unnest(%(types)s::text[]) AS t (type), LATERAL (
  SELECT id FROM tailrace_events_event e
  WHERE (e.type, e.id) > (t.type, 0) AND (e.type, e.id) < (t.type, %(beyond)s)
  ORDER BY e.type DESC, e.id DESC LIMIT %(limit)s) AS newest
ORDER BY id DESC LIMIT %(limit)s
"""
