from collections.abc import Collection, Iterable, Iterator
from typing import Any

from events.publish import Recorded
from jobs.backoff import Backoff
from jobs.handler import ClaimedJob
from jobs.outcomes import Permanent
from subscriptions.channels.base import Channel
from subscriptions.channels.mail import digests, email_message, transport
from subscriptions.models import Notification
from subscriptions.types.channel import NewDelivery
from subscriptions.types.recipient import Recipient, RecipientKey


class Mail(Channel):
    """Mail an event to one user, or to the address of a group."""

    name = "subscriptions.mail"
    key = "mail"
    reaches_user = "u.email <> ''"
    unreachable_because = "no mail address"
    reaches_group = "a.email <> ''"
    has_digests = True
    # A mail server that is away for hours costs no mail: the tenth attempt comes after seven.
    max_attempts = 10
    backoff = Backoff(60, 300, 900, 3600)
    claim_timeout = 120
    time_limit = 300

    @classmethod
    def deliveries(cls, recipients: Iterable[Recipient]) -> Iterator[NewDelivery]:
        """One job for each mail that is sent at once; the others are collected for digests."""
        return super().deliveries(digests.collect(list(recipients)))

    @classmethod
    def deliveries_without_job(cls, event_ids: Collection[int]) -> set[tuple[int, RecipientKey]]:
        return digests.collected(event_ids)

    def deliver(self, job: ClaimedJob, event: Recorded, notification: Notification) -> Any:
        address = _address(notification)
        message = email_message.event_message(
            event, address=address, role=notification.role, job_id=job.id, user=notification.user
        )
        transport.send(message)
        return {"message_id": message.extra_headers["Message-ID"]}


def _address(notification: Notification) -> str:
    if notification.user is not None:
        return notification.user.email
    address = getattr(notification.group, "address", None)
    if address is None:
        raise Permanent("the group has no mail address any more")
    return str(address.email)
