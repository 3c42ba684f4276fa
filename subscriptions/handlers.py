"""Handlers: notify, and every channel."""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from django.db import connection, transaction
from pydantic import BaseModel

from events.arrays import array, numbers
from events.publish import Recorded
from events.types import EventType
from jobs.claimed import ClaimedJob
from jobs.enqueue import enqueue_many
from jobs.handler import Backoff, Handler
from jobs.outcomes import Permanent, Skip
from subscriptions import channels, digests, letter, outbox
from subscriptions.audible import allows, receiver_roles
from subscriptions.audience import Heard, audiences
from subscriptions.models import Digest, DigestItem
from subscriptions.readable import group_may_read, may_read
from subscriptions.recall import recall

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


class SendDigest(Handler):
    """Mail what a window has brought, in one mail, when the window ends."""

    name = "subscriptions.digest"
    max_attempts = 10
    backoff = Backoff(60, 300, 900, 3600)
    claim_timeout = 120
    time_limit = 300

    class Payload(BaseModel):
        digest: int

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        digest = (
            Digest.objects.select_related("user__preferences", "group__address")
            .filter(pk=job.payload.digest)
            .first()
        )
        if digest is None or digest.sent_at is not None:
            raise Skip("it was sent" if digest else "its recipient is gone")
        items = list(DigestItem.objects.filter(digest=digest).select_related("event"))
        told = [item.pk for item in items]
        events = _readable(digest, [recall(item.event) for item in _standing(items)])
        address = _address(digest)
        if not address or not events:
            digests.sent(digest, told)
            raise Skip("nothing is left to tell" if address else "there is no address any more")
        message = letter.write_digest(digest, events, address=address)
        outbox.send(message)
        late = digests.sent(digest, told)
        return {"events": len(events), "late": late}


def _standing(items: list[DigestItem]) -> list[DigestItem]:
    """Return the items whose event was not pruned, in the order of the events."""
    return sorted(
        (item for item in items if item.event is not None), key=lambda item: item.event_id
    )


def _readable(digest: Digest, events: list[Recorded]) -> list[Recorded]:
    if digest.user is not None:
        ids = may_read(digest.user, events)
        return [event for event in events if event.id in ids]
    name = digest.group.name if digest.group else ""
    return [event for event in events if group_may_read(name, event)]


def _address(digest: Digest) -> str:
    """Return where it goes; empty if its recipient left or has no address any more."""
    if digest.user is not None:
        return digest.user.email if digest.user.is_active else ""
    address = getattr(digest.group, "address", None)
    return str(address.email) if address else ""


def record(heard: Sequence[Heard]) -> None:
    """Write the notifications and owe the deliveries, all or none; done again, it adds nothing."""
    with transaction.atomic():
        _notify(heard)
        mails = digests.keep([one for one in heard if one.channel == "mail"])
        heard = [one for one in heard if one.channel != "mail"] + mails
        for key, those in groupby(sorted(heard, key=_by_channel), key=lambda one: one.channel):
            channel = channels.everything()[key]
            enqueue_many(
                channel,
                [
                    {"event_id": one.heard.event_id, "routing_key": one.routing_key}
                    | {"lane": one.lane}
                    for one in channel.deliveries(those)
                ],
            )


_NOTIFY = """
INSERT INTO subscriptions_notification (event_id, user_id, group_id, role)
SELECT * FROM unnest(%(event)s::bigint[], %(user)s::int[], %(group)s::int[], %(role)s::text[])
ON CONFLICT DO NOTHING
"""


def _notify(heard: Sequence[Heard]) -> None:
    """Record one per event and recipient, with the reason of the first channel that reaches them.

    As arrays, a thousand at a time: an event may have ten thousand recipients.
    """
    first: dict[tuple[int, str], Heard] = {}
    for one in heard:
        first.setdefault((one.event_id, one.recipient), one)
    rows = [one for _, one in sorted(first.items())]
    with connection.cursor() as cursor:
        for start in range(0, len(rows), 1000):
            batch = rows[start : start + 1000]
            params: dict[str, Any] = {
                "event": numbers(one.event_id for one in batch),
                "user": numbers(one.user_id for one in batch),
                "group": numbers(one.group_id for one in batch),
                "role": array(one.role for one in batch),
            }
            cursor.execute(_NOTIFY, params)


def _by_channel(one: Heard) -> tuple[str, int, str]:
    return (one.channel, one.event_id, one.recipient)


def _event(job: ClaimedJob) -> Recorded:
    if job.event is None:
        raise Permanent("the event is gone")
    return job.event
