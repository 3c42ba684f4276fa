"""The base class of handlers that send mails through one of several mail servers."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.conf import settings
from django.core.mail import EmailMessage

from tailrace.jobs.destinations.delivery import DeliveryResult, release
from tailrace.jobs.destinations.handler import DestinationHandler
from tailrace.jobs.handler import Backoff, ClaimedJob
from tailrace.subscriptions.channels.mail import transport

PLACES = 20
"""If this number of mails of a process wait for one server, other servers are preferred."""


@dataclass(slots=True)
class OutgoingMail:
    """The mail of one job."""

    message: EmailMessage


M = TypeVar("M", bound=OutgoingMail)


class MailHandler(DestinationHandler[M], Generic[M]):
    """Send a mail per job. A subclass implements `prepare`. All subclasses share the mail servers,
    their connections and their circuit breakers."""

    concurrency = PLACES * (1 + len(settings.MORE_MAIL_SERVERS))
    per_destination = None
    # The tenth attempt is about six hours after the first, so a shorter outage of the server loses
    # no mail.
    max_attempts = 10
    backoff = Backoff(60, 300, 900, 3600)
    claim_timeout = 120
    time_limit = 300

    def destinations(self, job: ClaimedJob) -> Sequence[str]:
        """Return the mail servers in an order that depends only on the job."""
        return sorted(
            transport.options_by_name(),
            key=lambda name: hashlib.sha256(f"{job.id} {name}".encode()).digest(),
        )

    def is_full(self, destination: str, chosen: int) -> bool:
        return transport.waiting(destination) + chosen >= PLACES

    async def send_to(self, destination: str, message: M) -> DeliveryResult:
        return await transport.server(destination).send(message.message)

    def breaker_name(self, destination: str) -> str:
        return f"subscriptions.mail:{destination}"

    def is_back(self, destination: str) -> None:
        for handler in MailHandler.__subclasses__():
            release(handler.name, None, by=f"{destination}, which is available again")
