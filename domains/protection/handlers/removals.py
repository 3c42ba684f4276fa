"""Do the steps of removal requests: at the sites of data brokers, and by mail."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string

from tailrace.domains.protection.services.removals import broker_site
from tailrace.domains.protection.services.removals.moves import MAIL_QUEUE, QUEUE, lane_of
from tailrace.domains.protection.services.removals.steps import (
    Outcome,
    Step,
    StepPayload,
    StepResult,
    record_all,
    steps_of,
)
from tailrace.jobs.destinations.delivery import DeliveryResult, DeliveryStatus
from tailrace.jobs.destinations.handler import Delivery, DestinationHandler
from tailrace.jobs.handler import Backoff, ClaimedJob
from tailrace.subscriptions.channels.mail.mail_handler import MailHandler, OutgoingMail

MAIL_OUTCOMES = {
    DeliveryStatus.SENT: Outcome.SUBMITTED,
    DeliveryStatus.REJECTED: Outcome.REFUSED,
    DeliveryStatus.FAILED: Outcome.FAILED,
    DeliveryStatus.DEFERRED: Outcome.FAILED,
}
"""The outcome of a step by the status of its mail. With the other statuses no mail server was
reached, so the step has not ended."""


@dataclass(slots=True)
class SiteVisit:
    step: Step
    result: StepResult | None = None


class RemoveBrokers(DestinationHandler[SiteVisit]):
    """Submit a broker's form, follow its confirmation link, or check whether a person is still
    listed.

    A broker is a destination with its own circuit breaker, concurrency limit and rate limit.
    """

    name = QUEUE
    Payload = StepPayload
    fair = True  # the lane is the broker
    concurrency = 50
    per_destination = 2
    claim_timeout = 90
    time_limit = 60

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, SiteVisit]]:
        for job, step in steps_of(jobs):
            yield job, SiteVisit(step)

    async def send(self, message: SiteVisit) -> DeliveryResult:
        message.result = await broker_site.perform(message.step)
        return message.result.delivery()

    def shared_rate(self, message: SiteVisit) -> tuple[str, float]:
        broker = message.step.broker
        return f"rate of {lane_of(broker.key)}", broker.per_minute / 60

    def finish(self, deliveries: Sequence[Delivery[SiteVisit]]) -> None:
        record_all(
            (each.job, each.message.step.row, each.message.result)
            for each in deliveries
            if each.message.result is not None
        )


@dataclass(slots=True)
class RemovalMail(OutgoingMail):
    step: Step


class SendRemovalMails(MailHandler[RemovalMail]):
    """Send a removal request to a broker by mail. It counts as submitted once a mail server accepts
    the mail."""

    name = MAIL_QUEUE
    Payload = StepPayload
    max_attempts = 4
    backoff = Backoff(60, 300, 900)

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, RemovalMail]]:
        for job, step in steps_of(jobs):
            yield job, RemovalMail(_message(step), step)

    def shared_rate(self, message: RemovalMail) -> tuple[str, float]:
        broker = message.step.broker
        return f"mails to {lane_of(broker.key)}", broker.per_minute / 60

    def finish(self, deliveries: Sequence[Delivery[RemovalMail]]) -> None:
        record_all(
            (each.job, each.message.step.row, StepResult(outcome, each.result.reason))
            for each in deliveries
            if (outcome := MAIL_OUTCOMES.get(each.result.status))
        )


def _message(step: Step) -> EmailMessage:
    """Return the mail to the broker. Each attempt of a submission has the same Message-ID, so that
    brokers can recognize a repeated mail."""
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    host = re.sub(r"[^A-Za-z0-9.-]", "-", host)
    context = {"broker": step.broker, "fields": step.broker.filled(step.person)}
    return EmailMessage(
        subject="Request to remove personal data",
        body=render_to_string("tailrace/protection/removals/request.txt", context),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[step.broker.mail or ""],
        reply_to=[step.person.email],
        headers={
            "Message-ID": f"<{step.idempotency_key}@{host}>",
            "Auto-Submitted": "auto-generated",
        },
    )
