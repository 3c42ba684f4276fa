"""The handler that finds the recipients of events. Each channel is a handler, too."""

from collections import Counter
from collections.abc import Sequence

from tailrace.events.publish import Recorded
from tailrace.events.types import EventType
from tailrace.jobs.destinations.hidden import readers_of_jobs, wait_for
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler
from tailrace.subscriptions.channels.webhook.history.recovery import Recover
from tailrace.subscriptions.notifications.audience.resolve import audiences
from tailrace.subscriptions.notifications.notify.notifications import notify_recipients
from tailrace.subscriptions.plans.rewrite import RewritePlan
from tailrace.subscriptions.types.channel import all_channels
from tailrace.subscriptions.types.subscribable import may_notify, unknown_receivers

__all__ = ["Notify", "Recover", "RewritePlan"]

all_channels()


class Notify(Handler):
    """Find the recipients of an event, and enqueue one delivery to each of them by each channel."""

    name = "subscriptions.notify"
    on = [EventType]
    batch_size = 100
    backoff = Backoff(10, 60, 300)

    def wants(self, event: Recorded) -> bool:
        """Return whether the event has receiver roles, a channel and, possibly, receivers."""
        return may_notify(event)

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        by_event = {job.require_event().id: job for job in jobs}
        restricted = readers_of_jobs(jobs)
        unknown = unknown_receivers(job.require_event() for job in jobs)
        wait_for(jobs, unknown, "the holders of the event's roles are not known yet")
        by_event = {id: job for id, job in by_event.items() if job.outcome is None}
        recipients = audiences((job.require_event() for job in by_event.values()), restricted)
        notify_recipients(recipients)
        deliveries = Counter(recipient.event_id for recipient in recipients)
        for event_id, job in by_event.items():
            if deliveries[event_id]:
                job.complete({"deliveries": deliveries[event_id]})
            else:
                job.skip("nobody is subscribed")
