from pathlib import Path

from django.conf import settings

from tailrace.events.publish import Recorded
from tailrace.jobs.handler import ClaimedJob
from tailrace.subscriptions.channels.base import Channel
from tailrace.subscriptions.models import Notification
from tailrace.subscriptions.notifications.rendering.event_text import render_event


class Pigeon(Channel):
    """Send an event by pigeon."""

    name = "pigeon.pigeon"
    key = "pigeon"
    offered_like = "web"
    by_default = False

    def deliver(self, job: ClaimedJob, event: Recorded, notification: Notification) -> None:
        assert notification.user is not None
        with Path(settings.PIGEON_LOFT).open("a") as loft:
            loft.write(f"{notification.user.username}: {render_event(event).title}\n")
