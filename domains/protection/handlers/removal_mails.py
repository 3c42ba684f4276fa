"""Send removal requests to data brokers by mail, with the mail servers of the platform."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tailrace.domains.protection.services.removals.mail_message import removal_message
from tailrace.domains.protection.services.removals.moves import MAIL_QUEUE, lane_of
from tailrace.domains.protection.services.removals.steps import (
    Outcome,
    Step,
    StepPayload,
    StepResult,
    record_all,
    steps_of,
)
from tailrace.jobs.destinations.delivery import DeliveryStatus
from tailrace.jobs.destinations.handler import Delivery
from tailrace.jobs.handler import Backoff, ClaimedJob
from tailrace.subscriptions.channels.mail.mail_handler import MailHandler, OutgoingMail

OUTCOMES = {
    DeliveryStatus.SENT: Outcome.SUBMITTED,
    DeliveryStatus.REJECTED: Outcome.REFUSED,
    DeliveryStatus.FAILED: Outcome.FAILED,
    DeliveryStatus.DEFERRED: Outcome.FAILED,
}
"""The outcome of a step by the status of its mail. With the other statuses no mail server was
reached, so the step has not ended."""


@dataclass(slots=True)
class RemovalMail(OutgoingMail):
    """The mail of one job, and the step of its request."""

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
            yield job, RemovalMail(removal_message(step), step)

    def shared_rate(self, message: RemovalMail) -> tuple[str, float]:
        broker = message.step.broker
        return f"mails to {lane_of(broker.key)}", broker.per_minute / 60

    def finish(self, deliveries: Sequence[Delivery[RemovalMail]]) -> None:
        record_all(
            (each.job, each.message.step.row, StepResult(outcome, each.result.reason))
            for each in deliveries
            if (outcome := OUTCOMES.get(each.result.status))
        )
