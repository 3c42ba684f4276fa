from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.core.mail import EmailMessage

from tailrace.jobs.handler import ClaimedJob, Permanent
from tailrace.subscriptions.channels.base import Channel, Deliverable, deliverable_jobs
from tailrace.subscriptions.channels.mail import digests, email_message
from tailrace.subscriptions.channels.mail.mail_handler import MailHandler, OutgoingMail
from tailrace.subscriptions.types.channel import NewDelivery, Sent
from tailrace.subscriptions.types.recipient import Recipient, RecipientKey
from tailrace.subscriptions.types.subscribable import mail_contexts_of

PAUSE = 3.0
"""Seconds until the next check of a mail whose content is being fetched."""


class Mail(MailHandler[OutgoingMail], Channel):
    """Mail an event to one user, or to the address of a group."""

    name = "subscriptions.mail"
    key = "mail"
    reaches_user = "u.email <> ''"
    unreachable_because = "no mail address"
    reaches_group = "a.email <> ''"
    has_digests = True

    @classmethod
    def deliveries(cls, recipients: Iterable[Recipient]) -> Iterator[NewDelivery]:
        """Yield one job per mail that is sent at once; the other events are added to digests."""
        return super().deliveries(digests.collect(list(recipients)))

    @classmethod
    def deliveries_without_job(cls, event_ids: Collection[int]) -> set[tuple[int, RecipientKey]]:
        return digests.collected(event_ids)

    @classmethod
    def sent_without_job(cls, event_id: int, keys: Collection[RecipientKey]) -> Iterator[Sent]:
        return digests.sent(event_id, keys)

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, OutgoingMail]]:
        recipients = list(deliverable_jobs(jobs, groups=True))
        contexts = mail_contexts_of(recipient.event for recipient in recipients)
        for recipient in recipients:
            more = contexts[recipient.event.id]
            if more is None:
                recipient.job.snooze("the content of the mail is being fetched", seconds=PAUSE)
                continue
            try:
                yield recipient.job, OutgoingMail(_message(recipient, more))
            except Permanent as error:
                recipient.job.outcome = error


def _message(recipient: Deliverable, more: Mapping[str, Any]) -> EmailMessage:
    notification = recipient.notification
    address = email_message.address_of(notification)
    if notification.group and not address:
        raise Permanent("the group no longer has a mail address")
    return email_message.event_message(
        recipient.event,
        address=address,
        role=notification.role,
        job_id=recipient.job.id,
        user=notification.user,
        more=more,
    )
