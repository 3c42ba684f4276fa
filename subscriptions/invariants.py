"""Invariants: what is kept is bounded, and what is owed to people is sent."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection

from events import clock
from events.models import Event
from jobs.invariants import Invariant
from jobs.models import Job
from jobs.states import State
from subscriptions import digests
from subscriptions.models import Delivery, Digest, FeedItem, InboxItem, Notification

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


def _days_ago(days: int) -> datetime:
    return clock.now() - timedelta(days=days)


class NotificationsAreKeptInTime(Invariant):
    """No notification, inbox item or digest is older than NOTIFICATIONS_RETENTION_DAYS."""

    name = "subscriptions.notifications_are_kept_in_time"
    every = 60
    limit = 5000

    def find(self) -> Sequence[Any]:
        before = _days_ago(settings.NOTIFICATIONS_RETENTION_DAYS)
        oldest = Notification.objects.order_by("id").values_list("id", "created_at")
        found: list[Any] = [
            (Notification, id) for id, created_at in oldest[: self.limit] if created_at < before
        ]
        items = InboxItem.objects.filter(arrived_at__lt=before).order_by("arrived_at")
        found += [(InboxItem, id) for id in items.values_list("id", flat=True)[: self.limit]]
        first = Digest.objects.order_by("id").values_list("id", "window_end")
        found += [(Digest, id) for id, end in first[: self.limit] if end < before]
        return found

    def repair(self, found: Sequence[Any]) -> int:
        ids = {model: [id for kind, id in found if kind is model] for model, _ in found}
        return sum(model.objects.filter(pk__in=those).delete()[0] for model, those in ids.items())


class DeliveriesAreKeptInTime(Invariant):
    """No try to deliver to a webhook is older than DELIVERIES_RETENTION_DAYS."""

    name = "subscriptions.deliveries_are_kept_in_time"
    every = 60
    limit = 5000

    def find(self) -> Sequence[Any]:
        old = Delivery.objects.filter(at__lt=_days_ago(settings.DELIVERIES_RETENTION_DAYS))
        return list(old.order_by("at").values_list("pk", flat=True)[: self.limit])

    def repair(self, found: Sequence[Any]) -> int:
        return Delivery.objects.filter(pk__in=found).delete()[0]


class DigestsAreOwed(Invariant):
    """A digest whose window has ended, and that was not sent, has a job, or had one that an
    operator knows of: it failed or was cancelled."""

    name = "subscriptions.digests_are_owed"
    every = 60

    def find(self) -> Sequence[Any]:
        due = Digest.objects.filter(
            sent_at=None, window_end__gt=_days_ago(7), window_end__lt=clock.now()
        )
        unsent = {str(one.pk): one for one in due.order_by("window_end")[: self.limit]}
        # One index for each state; there is none for the cancelled, of which few are looked for.
        for state in (State.PENDING, State.RUNNING, State.FAILED, State.CANCELLED):
            if unsent:
                jobs = Job.objects.filter(
                    handler="subscriptions.digest", state=state, unique_key__in=list(unsent)
                )
                if state == State.CANCELLED:
                    jobs = jobs.filter(finished_at__gt=_days_ago(7))
                for key in jobs.values_list("unique_key", flat=True):
                    unsent.pop(key or "", None)
        return list(unsent.values())

    def repair(self, found: Sequence[Any]) -> int:
        return digests.owe(found)
