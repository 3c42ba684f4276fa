"""Invariants: what is kept for feeds and notifications is bounded."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from events.models import Event
from jobs.invariants import Invariant
from subscriptions.models import FeedItem, Notification

FEED_ITEMS = 100
"""Items that a user's feeds show, and that are kept."""

_SURPLUS = """
SELECT old.id FROM (
  SELECT user_id FROM subscriptions_feeditem GROUP BY user_id HAVING count(*) > %(keep)s LIMIT 100
) full_feed CROSS JOIN LATERAL (
  SELECT id FROM subscriptions_feeditem item WHERE item.user_id = full_feed.user_id
  ORDER BY event_id DESC OFFSET %(keep)s LIMIT %(limit)s
) old LIMIT %(limit)s
"""


class FeedsAreShort(Invariant):
    """A user's feeds hold no more items than they show."""

    name = "subscriptions.feeds_are_short"
    every = 300

    def find(self) -> Sequence[Any]:
        with connection.cursor() as cursor:
            cursor.execute(_SURPLUS, {"keep": FEED_ITEMS, "limit": self.limit})
            return [row[0] for row in cursor.fetchall()]

    def repair(self, found: Sequence[Any]) -> int:
        return FeedItem.objects.filter(id__in=found).delete()[0]


class NotificationsHaveTheirEvent(Invariant):
    """Notifications and feed items go when events as old as theirs have been pruned."""

    name = "subscriptions.notifications_have_their_event"
    every = 3600

    def find(self) -> Sequence[Any]:
        oldest = Event.objects.order_by("id").values_list("id", flat=True).first()
        if oldest is None:
            return []
        found: list[Any] = []
        for model in (Notification, FeedItem):
            rows = model.objects.filter(event_id__lt=oldest).order_by("event_id")
            ids = rows.values_list("id", flat=True)[: self.limit]
            found += [(model, id) for id in ids]
        return found

    def repair(self, found: Sequence[Any]) -> int:
        return sum(
            model.objects.filter(id__in=[id for kind, id in found if kind is model]).delete()[0]
            for model in (Notification, FeedItem)
        )
