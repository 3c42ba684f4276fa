from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import F

from tailrace.jobs.destinations.delivery import DeliveryResult
from tailrace.jobs.destinations.handler import Delivery
from tailrace.jobs.handler import Cancel, ClaimedJob
from tailrace.net.http_client import Reply
from tailrace.subscriptions.channels.base import Deliverable, deliverable_jobs
from tailrace.subscriptions.channels.http_channel import HttpChannel, HttpMessage, message_id
from tailrace.subscriptions.channels.sms import gsm_alphabet, limits, service
from tailrace.subscriptions.models import Preferences
from tailrace.subscriptions.notifications.rendering.event_text import render_event
from tailrace.subscriptions.types.channel import NewDelivery
from tailrace.subscriptions.types.recipient import Recipient
from tailrace.subscriptions.types.subscribable import is_urgent

LANE = "service"
"""The only lane: there is one SMS service, and its waiting jobs are released together."""


@dataclass(slots=True)
class Text(HttpMessage):
    """The request that sends one text message."""

    phone: str = ""


class Sms(HttpChannel[Text]):
    """Send an event to a user's phone, as one text message of 160 characters."""

    name = "subscriptions.sms"
    key = "sms"
    by_default = False
    reaches_user = (
        "EXISTS (SELECT FROM tailrace_subscriptions_preferences p WHERE p.user_id = u.id"
        " AND p.phone <> '' AND p.phone = p.confirmed_phone)"
        if settings.SMS_URL
        else "false"
    )
    unreachable_because = "no confirmed phone number"
    public_only = False
    concurrency = per_destination = 20

    @classmethod
    def deliveries(cls, recipients: Iterable[Recipient]) -> Iterator[NewDelivery]:
        for recipient in recipients:
            yield NewDelivery(recipient, str(recipient.key), LANE)

    def destination(self, job: ClaimedJob) -> str:
        return urlsplit(settings.SMS_URL).netloc

    def lane_of(self, destination: str) -> str:
        return LANE

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, Text]]:
        for recipient, phone in _sendable(jobs):
            event_text = render_event(recipient.event)
            id = message_id(recipient.job.id, recipient.event)
            body = gsm_alphabet.one_message(event_text.title, event_text.link)
            yield recipient.job, Text(service.text_request(phone, body, id), phone=phone)

    def result_of(self, reply: Reply) -> DeliveryResult:
        if not reply.arrived or reply.status is None:
            return super().result_of(reply)
        return service.result_of(reply, reply.status)

    def finish(self, deliveries: Sequence[Delivery[Text]]) -> None:
        opted_out = [
            delivery
            for delivery in deliveries
            if (reply := delivery.message.reply) and service.code_of(reply) == service.OPTED_OUT
        ]
        for delivery in opted_out:
            delivery.job.outcome = Cancel("the owner of the number opted out of texts")
        # It may be illegal to send more. A user who wants texts can enter the number again.
        phones = [delivery.message.phone for delivery in opted_out]
        Preferences.objects.filter(phone__in=phones).update(phone="", confirmed_phone="")


def _sendable(jobs: Sequence[ClaimedJob]) -> Iterator[tuple[Deliverable, str]]:
    """Yield the jobs that may be sent now, with their numbers; set the outcomes of the others."""
    recipients = list(deliverable_jobs(jobs))
    preferences = Preferences.objects.filter(
        user__in={recipient.user_id for recipient in recipients}, phone=F("confirmed_phone")
    )
    phones = dict(preferences.values_list("user_id", "phone"))
    # A job is counted only when it is claimed for the first time.
    texts = {
        recipient.job: limits.Text(
            recipient.user_id,
            phones.get(recipient.user_id, ""),
            is_urgent(recipient.event.event_type),
        )
        for recipient in recipients
        if recipient.job.claim_no == 1
    }
    may_send = limits.within_a_day(texts.values())
    for recipient in recipients:
        if not settings.SMS_URL:
            recipient.job.outcome = Cancel("text messages are not set up: SMS_URL")
        elif not (phone := phones.get(recipient.user_id, "")):
            recipient.job.skip("the recipient no longer has a confirmed phone number")
        elif recipient.job in texts and not may_send(texts[recipient.job]):
            recipient.job.skip(f"{settings.SMS_PER_DAY} texts were sent today (SMS_PER_DAY)")
        else:
            yield recipient, phone
