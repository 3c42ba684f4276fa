"""The base of handlers that send mails: each through one of the mail servers that work."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from django.conf import settings
from django.core.mail import EmailMessage

from tailrace.jobs.backoff import Backoff
from tailrace.jobs.destinations.delivery import DeliveryResult, release
from tailrace.jobs.destinations.handler import DestinationHandler
from tailrace.jobs.handler import ClaimedJob
from tailrace.subscriptions.channels.mail import transport

PLACES = 20
"""Mails for one server, per process, before others are preferred."""


@dataclass(slots=True)
class OutgoingMail:
    """The mail of one job."""

    message: EmailMessage


M = TypeVar("M", bound=OutgoingMail)


class MailHandler(DestinationHandler[M], Generic[M]):
    """Send a mail for each job: write `prepare`. All such handlers share the mail servers, their
    connections and their breakers."""

    concurrency = PLACES * (1 + len(settings.MORE_MAIL_SERVERS))
    per_destination = None
    # A mail server that is away for hours costs no mail: the tenth attempt comes after seven.
    max_attempts = 10
    backoff = Backoff(60, 300, 900, 3600)
    claim_timeout = 120
    time_limit = 300

    def destinations(self, job: ClaimedJob) -> Sequence[str]:
        """Return the mail servers, for each job in an order of its own, which stays the same."""
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
            release(handler.name, None, by=f"{destination}, which is back")
