"""Mail one digest: the events in it that its recipient may still read."""

from typing import Any

from pydantic import BaseModel

from events.publish import Recorded
from jobs.backoff import Backoff
from jobs.handler import ClaimedJob, Handler
from jobs.outcomes import Skip
from subscriptions.audience.visibility import recipient_may_read
from subscriptions.channels.mail import digests, email_message, transport
from subscriptions.models import Digest, DigestItem


class SendDigest(Handler):
    """Mail the events of a window, in one mail, when the window ends."""

    name = "subscriptions.digest"
    max_attempts = 10
    backoff = Backoff(60, 300, 900, 3600)
    claim_timeout = 120
    time_limit = 300

    class Payload(BaseModel):
        digest: int

    def handle(self, job: ClaimedJob) -> dict[str, Any]:
        rows = Digest.objects.select_related("user__preferences", "group__address")
        digest = rows.filter(pk=job.payload.digest).first()
        if digest is None or digest.sent_at is not None:
            raise Skip("it was sent" if digest else "its recipient is gone")
        items = list(DigestItem.objects.filter(digest=digest).select_related("event"))
        item_ids = [item.pk for item in items]
        events = _readable_events(digest, items)
        address = _address(digest)
        if not address or not events:
            digests.mark_sent(digest, item_ids)
            raise Skip("no event is left to send" if address else "the recipient has no address")
        transport.send(email_message.digest_message(digest, events, address=address))
        return {"events": len(events), "late": digests.mark_sent(digest, item_ids)}


def _readable_events(digest: Digest, items: list[DigestItem]) -> list[Recorded]:
    """Return the events that were not pruned and may still be read, oldest first."""
    rows = sorted((item.event for item in items if item.event), key=lambda event: event.pk)
    events = [Recorded.from_model(row) for row in rows]
    readable = recipient_may_read(digest.user, digest.group, events)
    return [event for event in events if event.id in readable]


def _address(digest: Digest) -> str:
    """Return where it goes; empty if its recipient is inactive or has no address any more."""
    if digest.user is not None:
        return digest.user.email if digest.user.is_active else ""
    address = getattr(digest.group, "address", None)
    return str(address.email) if address else ""
