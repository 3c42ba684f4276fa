"""Old notifications, feed items and digests are deleted, and each digest is sent."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db.models import Model

from tailrace.db.query import database_now, query
from tailrace.events.models import Event
from tailrace.jobs.models import Job
from tailrace.jobs.runtime.invariant import Invariant
from tailrace.jobs.runtime.states import State
from tailrace.subscriptions.channels.mail import digests
from tailrace.subscriptions.channels.rss.feeds import FEED_ITEMS
from tailrace.subscriptions.models import Delivery, Digest, FeedItem, InboxItem, Notification

_SURPLUS_FEED_ITEMS = """
SELECT old.id FROM (
  SELECT user_id FROM tailrace_subscriptions_feeditem GROUP BY user_id HAVING count(*) > %(keep)s
    LIMIT 100
) full_feed CROSS JOIN LATERAL (
  SELECT id FROM tailrace_subscriptions_feeditem item WHERE item.user_id = full_feed.user_id
  ORDER BY event_id DESC OFFSET %(keep)s LIMIT %(limit)s
) old LIMIT %(limit)s
"""


class _RowsToDelete(Invariant):
    """Each violation is a row to delete, as a pair of its model's name and its id."""

    def repair(self, violations: Sequence[tuple[str, int]]) -> int:
        ids: dict[str, list[int]] = defaultdict(list)
        for model, id in violations:
            ids[model].append(id)
        models = {name: apps.get_model("tailrace_subscriptions", name) for name in ids}
        managers = {name: model._default_manager for name, model in models.items()}
        return sum(managers[name].filter(pk__in=ids[name]).delete()[0] for name in ids)


def _rows(model: type[Model], ids: Iterable[int]) -> list[tuple[str, int]]:
    return [(model.__name__, id) for id in ids]


class FeedsAreShort(_RowsToDelete):
    """A user has at most as many feed items as a feed shows."""

    name = "subscriptions.feeds_are_short"
    every = 300

    def find(self) -> Sequence[Any]:
        surplus = query(_SURPLUS_FEED_ITEMS, keep=FEED_ITEMS, limit=self.limit)
        return _rows(FeedItem, (id for (id,) in surplus))


class NotificationsHaveTheirEvent(_RowsToDelete):
    """No notification or feed item is older than the oldest event."""

    name = "subscriptions.notifications_have_their_event"
    every = 3600

    def find(self) -> Sequence[Any]:
        oldest = Event.objects.order_by("id").values_list("id", flat=True).first()
        if oldest is None:
            return []
        rows: list[Any] = []
        for model in (Notification, FeedItem):
            old = model.objects.filter(event_id__lt=oldest).order_by("event_id")
            rows += _rows(model, old.values_list("id", flat=True)[: self.limit])
        return rows


def _days_ago(days: int) -> datetime:
    return database_now() - timedelta(days=days)


class NotificationsAreKeptInTime(_RowsToDelete):
    """No notification, inbox item or digest is older than NOTIFICATIONS_RETENTION_DAYS."""

    name = "subscriptions.notifications_are_kept_in_time"
    every = 60
    limit = 5000

    def find(self) -> Sequence[Any]:
        before = _days_ago(settings.NOTIFICATIONS_RETENTION_DAYS)
        oldest = Notification.objects.order_by("id").values_list("id", "created_at")
        rows = _rows(Notification, (id for id, at in oldest[: self.limit] if at < before))
        items = InboxItem.objects.filter(arrived_at__lt=before).order_by("arrived_at")
        rows += _rows(InboxItem, items.values_list("id", flat=True)[: self.limit])
        ends = Digest.objects.order_by("id").values_list("id", "window_end")
        return rows + _rows(Digest, (id for id, end in ends[: self.limit] if end < before))


class DeliveriesAreKeptInTime(_RowsToDelete):
    """No attempt to deliver to a webhook is older than DELIVERIES_RETENTION_DAYS."""

    name = "subscriptions.deliveries_are_kept_in_time"
    every = 60
    limit = 5000

    def find(self) -> Sequence[Any]:
        old = Delivery.objects.filter(at__lt=_days_ago(settings.DELIVERIES_RETENTION_DAYS))
        return _rows(Delivery, old.order_by("at").values_list("pk", flat=True)[: self.limit])


class DigestsAreOwed(Invariant):
    """An unsent digest whose window has ended has a job, even if it failed or was cancelled."""

    name = "subscriptions.digests_are_owed"
    every = 60
    repaired_by = digests.enqueue_digests

    def find(self) -> Sequence[Any]:
        due = Digest.objects.filter(
            sent_at=None, window_end__gt=_days_ago(7), window_end__lt=database_now()
        )
        unsent = {str(digest.pk): digest for digest in due.order_by("window_end")[: self.limit]}
        # Each state but CANCELLED has an index, so cancelled jobs are limited by time.
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
