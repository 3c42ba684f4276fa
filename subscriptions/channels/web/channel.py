from typing import Any

from tailrace.events.publish import Recorded
from tailrace.jobs.handler import Backoff, ClaimedJob
from tailrace.subscriptions.channels.base import Channel
from tailrace.subscriptions.channels.web import inbox
from tailrace.subscriptions.models import Notification


class Web(Channel):
    """Put an event into the inbox of a user or a group."""

    name = "subscriptions.web"
    key = "web"
    reaches_group = "true"
    batch_size = 100
    backoff = Backoff(10, 60, 300)

    def deliver(self, job: ClaimedJob, event: Recorded, notification: Notification) -> Any:
        inbox.put(event, user=notification.user, group=notification.group, role=notification.role)
