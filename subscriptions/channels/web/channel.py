from typing import Any

from events.publish import Recorded
from jobs.backoff import Backoff
from jobs.handler import ClaimedJob
from subscriptions.channels.base import Channel
from subscriptions.channels.web import inbox
from subscriptions.models import Notification


class Web(Channel):
    """Put an event into the inbox of a user, or into that of a group."""

    name = "subscriptions.web"
    key = "web"
    reaches_group = "true"
    batch_size = 100
    backoff = Backoff(10, 60, 300)

    def deliver(self, job: ClaimedJob, event: Recorded, notification: Notification) -> Any:
        inbox.put(event, user=notification.user, group=notification.group, role=notification.role)
