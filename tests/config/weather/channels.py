from events.publish import Recorded
from jobs.handler import ClaimedJob
from subscriptions.channels.base import Channel
from subscriptions.models import Notification


class Pager(Channel):
    """Send an event to a pager."""

    name = "weather.pager"
    key = "pager"

    def deliver(self, job: ClaimedJob, event: Recorded, notification: Notification) -> None:
        """Nobody has a pager."""
