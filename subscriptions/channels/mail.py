from typing import Any

from events.publish import Recorded
from jobs.claimed import ClaimedJob
from jobs.handler import Backoff
from jobs.outcomes import Permanent
from subscriptions import letter, outbox
from subscriptions.channels.base import Channel
from subscriptions.models import Notification


class Mail(Channel):
    """Mail an event to one user, or to the address of a group."""

    name = "subscriptions.mail"
    key = "mail"
    reaches_user = "u.email <> ''"
    lacking = "no mail address"
    reaches_group = "a.email <> ''"
    # A mail server that is away for hours costs no mail: the tenth attempt comes after seven.
    max_attempts = 10
    backoff = Backoff(60, 300, 900, 3600)
    claim_timeout = 120
    time_limit = 300

    def deliver(self, job: ClaimedJob, event: Recorded, notification: Notification) -> Any:
        address = _address(notification)
        message = letter.write(
            event, address=address, role=notification.role, job_id=job.id, user=notification.user
        )
        outbox.send(message)
        return {"message_id": message.extra_headers["Message-ID"]}


def _address(notification: Notification) -> str:
    if notification.user is not None:
        return notification.user.email
    address = getattr(notification.group, "address", None)
    if address is None:
        raise Permanent("the group has no mail address any more")
    return str(address.email)
