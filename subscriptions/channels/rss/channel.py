from typing import Any

from tailrace.events.publish import Recorded
from tailrace.jobs.handler import Backoff, ClaimedJob
from tailrace.subscriptions.channels.base import Channel
from tailrace.subscriptions.models import FeedItem, Notification


class Rss(Channel):
    """Add an event to the feeds of a user."""

    name = "subscriptions.rss"
    key = "rss"
    reaches_user = (
        "EXISTS (SELECT FROM tailrace_subscriptions_feed f WHERE f.user_id = u.id"
        " AND f.revoked_at IS NULL)"
    )
    unreachable_because = "no feed"
    batch_size = 100
    backoff = Backoff(10, 60, 300)

    def deliver(self, job: ClaimedJob, event: Recorded, notification: Notification) -> Any:
        FeedItem.objects.bulk_create(
            [FeedItem(user=notification.user, event_id=event.id, role=notification.role)],
            ignore_conflicts=True,
        )
