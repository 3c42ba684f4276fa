"""Mail a digest: the events in it that its recipient may still read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import structlog
from django.db.models import Count, Max
from pydantic import BaseModel

from tailrace.events.privacy.visibility import admits, readers_of
from tailrace.events.publish import Recorded
from tailrace.jobs.destinations.delivery import DeliveryStatus
from tailrace.jobs.destinations.handler import Delivery
from tailrace.jobs.destinations.hidden import NOT_KNOWN, pause, request_readers
from tailrace.jobs.handler import ClaimedJob, Permanent
from tailrace.subscriptions.channels.mail import digests, email_message
from tailrace.subscriptions.channels.mail.mail_handler import MailHandler, OutgoingMail
from tailrace.subscriptions.models import Digest, DigestItem

log = structlog.get_logger(__name__)

MAX_EXAMINED = 1000
"""The number of items of a digest whose events are read; further items are only counted."""


@dataclass(slots=True)
class OutgoingDigest(OutgoingMail):
    """The mail of a digest, its last item, and its number of events."""

    digest: Digest
    last_item: int
    event_count: int


class SendDigest(MailHandler[OutgoingDigest]):
    """Mail the events of a window in one mail when the window ends."""

    name = "subscriptions.digest"

    class Payload(BaseModel):
        digest: int

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, OutgoingDigest]]:
        rows = Digest.objects.select_related("user__preferences", "group__address")
        known = rows.in_bulk({job.payload.digest for job in jobs})
        for job in jobs:
            digest = known.get(job.payload.digest)
            if digest is None or digest.sent_at is not None:
                job.skip("the digest was already sent" if digest else "the recipient was deleted")
            elif mail := _outgoing(job, digest):
                yield job, mail

    def finish(self, deliveries: Sequence[Delivery[OutgoingDigest]]) -> None:
        for delivery in deliveries:
            if delivery.result.status is DeliveryStatus.SENT:
                _mark_sent(delivery)


def _outgoing(job: ClaimedJob, digest: Digest) -> OutgoingDigest | None:
    """Return the mail; or set the outcome of the job, and return None."""
    content = _content(digest)
    if content.undecided and (seconds := pause(digest.window_end)):
        request_readers(content.undecided)
        job.snooze(NOT_KNOWN, seconds=seconds)
        return None
    address = email_message.address_of(digest)
    if not address or not (content.events or content.unread):
        digests.mark_sent(digest, content.last_item)
        job.skip("no event is left to send" if address else "the recipient has no address")
        return None
    try:
        message = email_message.digest_message(
            digest, content.events, address=address, unread=content.unread
        )
    except Permanent as error:
        job.outcome = error
        return None
    return OutgoingDigest(message, digest, content.last_item, len(content.events) + content.unread)


def _mark_sent(delivery: Delivery[OutgoingDigest]) -> None:
    mail = delivery.message
    try:
        late = digests.mark_sent(mail.digest, mail.last_item)
    except Exception:  # so that the other digests are marked
        log.exception("digest.not_marked", digest=mail.digest.pk)
    else:
        counts = {"events": mail.event_count, "late": late}
        delivery.job.complete(delivery.result.result | counts)


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a digest's mail."""

    events: list[Recorded]
    """The first events that the recipient may read, oldest first."""
    unread: int
    """The number of items beyond MAX_EXAMINED."""
    last_item: int
    """The id of the last item; later items are moved to the next digest."""
    undecided: list[Recorded] = field(default_factory=list)
    """Events whose readers are not known yet."""


def _content(digest: Digest) -> Content:
    """Return the content of the digest, with a constant number of statements."""
    # Items are added under a lock on the digest, so the order of ids is the order of commits.
    items = DigestItem.objects.filter(digest=digest)
    count, last = items.aggregate(count=Count("pk"), last=Max("pk")).values()
    if not count:
        return Content([], 0, 0)
    first = items.filter(pk__lte=last).order_by("event")
    rows = [item.event for item in first.select_related("event")[:MAX_EXAMINED] if item.event]
    events = [Recorded.from_model(row) for row in rows]
    restricted = readers_of(events)
    readable = [
        event for event in events if admits(restricted.get(event.id), digest.user, digest.group)
    ]
    undecided = [
        event for event in events if event.id in restricted and restricted[event.id].undecided
    ]
    return Content(readable, max(count - MAX_EXAMINED, 0), last, undecided)
