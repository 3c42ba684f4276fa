"""Handlers: notify, and every channel."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

from django.db import transaction

from events.publish import Recorded
from events.types import EventType
from jobs.claimed import ClaimedJob
from jobs.enqueue import enqueue_many
from jobs.handler import Backoff, Handler
from jobs.outcomes import Permanent
from subscriptions import channels
from subscriptions.audible import allows, receiver_roles
from subscriptions.audience import Heard, audiences
from subscriptions.models import Notification

channels.everything()


class Notify(Handler):
    """Find who hears of an event, and owe each of them one delivery by each channel."""

    name = "subscriptions.notify"
    on = [EventType]
    batch_size = 100
    backoff = Backoff(10, 60, 300)

    def wants(self, event: Recorded) -> bool:
        """Every event that has receivers and a way to them."""
        found = event.event_type
        return bool(
            found
            and receiver_roles(found)
            and any(allows(found, key) for key in channels.everything())
        )

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        by_event = {_event(job).id: job for job in jobs}
        heard = audiences(_event(job) for job in jobs)
        record(heard)
        deliveries = Counter(one.event_id for one in heard)
        for event_id, job in by_event.items():
            if deliveries[event_id]:
                job.complete({"deliveries": deliveries[event_id]})
            else:
                job.skip("nobody is subscribed")


def record(heard: Sequence[Heard]) -> None:
    """Write the notifications and owe the deliveries, all or none; done again, it adds nothing."""
    with transaction.atomic():
        Notification.objects.bulk_create(
            _notifications(heard), ignore_conflicts=True, batch_size=1000
        )
        for channel, those in groupby(sorted(heard, key=_by_channel), key=lambda one: one.channel):
            enqueue_many(
                channels.everything()[channel],
                [{"event_id": one.event_id, "routing_key": one.recipient} for one in those],
            )


def _notifications(heard: Sequence[Heard]) -> list[Notification]:
    """One per event and recipient, with the reason of the first channel that reaches them."""
    first: dict[tuple[int, str], Heard] = {}
    for one in heard:
        first.setdefault((one.event_id, one.recipient), one)
    return [
        Notification(
            event_id=one.event_id, user_id=one.user_id, group_id=one.group_id, role=one.role
        )
        for _, one in sorted(first.items())
    ]


def _by_channel(one: Heard) -> tuple[str, int, str]:
    return (one.channel, one.event_id, one.recipient)


def _event(job: ClaimedJob) -> Recorded:
    if job.event is None:
        raise Permanent("the event is gone")
    return job.event
