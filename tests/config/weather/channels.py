from tailrace.events.publish import Recorded
from tailrace.jobs.handler import ClaimedJob
from tailrace.subscriptions.channels.base import Channel
from tailrace.subscriptions.models import Notification


class Pager(Channel):
    """Send an event to a pager."""

    name = "weather.pager"
    key = "pager"

    def deliver(self, job: ClaimedJob, event: Recorded, notification: Notification) -> None:
        """Nobody has a pager."""
