import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings

from jobs.destinations.delivery import DeliveryResult, DeliveryStatus
from jobs.destinations.handler import Delivery
from jobs.handler import ClaimedJob
from jobs.outcomes import Cancel
from net.http_client import Reply, Request
from subscriptions.channels.base import Deliverable, deliverable_jobs
from subscriptions.channels.http_channel import HttpChannel, HttpMessage, message_id
from subscriptions.channels.sms import gsm_alphabet
from subscriptions.models import Preferences
from subscriptions.rendering.event_text import render_event
from subscriptions.types.channel import NewDelivery
from subscriptions.types.recipient import Recipient

LANE = "service"
"""There is one SMS service: all that waits for it is released together."""
# Error codes and statuses of the service.
OPTED_OUT = 21610
TOO_MANY_REQUESTS = 20429
UNAUTHORIZED = (401, 403, 404)
"""The account, its token or the URL is wrong: an operator has to correct the settings."""

PHONE_NUMBER = re.compile(r"\+?\d{6,}")
"""Removed from the service's error messages."""


@dataclass(slots=True)
class Text(HttpMessage):
    """The POST of one text."""

    phone: str = ""


class Sms(HttpChannel[Text]):
    """Text an event to the phone of a user, in one line of 160 characters."""

    name = "subscriptions.sms"
    key = "sms"
    by_default = False
    reaches_user = (
        "EXISTS (SELECT FROM subscriptions_preferences p WHERE p.user_id = u.id AND p.phone <> '')"
        if settings.SMS_URL
        else "false"
    )
    unreachable_because = "no phone number"
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
            yield recipient.job, Text(_request(recipient, phone), phone=phone)

    def result_of(self, reply: Reply) -> DeliveryResult:
        """Return what a reply means, by its status and the error code in its body."""
        if not reply.arrived or reply.status is None:
            return super().result_of(reply)
        if 200 <= reply.status < 300:
            return DeliveryResult(
                DeliveryStatus.SENT, result={"status": reply.status, "sid": _field(reply, "sid")}
            )
        message = PHONE_NUMBER.sub("…", str(_field(reply, "message") or "no reason"))
        reason = f"answered {reply.status}: {message}"[:300]
        if code := _code(reply):
            reason = f"{reason} ({code})"
        if code == TOO_MANY_REQUESTS or reply.status in (408, 429) or reply.status >= 500:
            return DeliveryResult(DeliveryStatus.FAILED, reason, reply.retry_after)
        if reply.status in UNAUTHORIZED and code != OPTED_OUT:
            reason = f"{reason}: check SMS_URL and SMS_TOKEN"
            return DeliveryResult(DeliveryStatus.UNAVAILABLE, reason)
        return DeliveryResult(DeliveryStatus.REJECTED, reason)

    def finish(self, deliveries: Sequence[Delivery[Text]]) -> None:
        opted_out = [each for each in deliveries if _opted_out(each.message.reply)]
        for delivery in opted_out:
            delivery.job.outcome = Cancel("the owner of the number opted out of texts")
        # It may be illegal to send more; a person who wants texts enters the number again.
        phones = [each.message.phone for each in opted_out]
        Preferences.objects.filter(phone__in=phones).update(phone="")


def _sendable(jobs: Sequence[ClaimedJob]) -> Iterator[tuple[Deliverable, str]]:
    """Yield the jobs that may be sent now, with their numbers; set the outcomes of the others."""
    recipients = list(deliverable_jobs(jobs))
    preferences = Preferences.objects.filter(
        user__in={recipient.user_id for recipient in recipients}
    )
    phones = dict(preferences.values_list("user_id", "phone"))
    for recipient in recipients:
        if not settings.SMS_URL:
            recipient.job.outcome = Cancel("texts are not set up: SMS_URL")
        elif phone := phones.get(recipient.user_id, ""):
            yield recipient, phone
        else:
            recipient.job.skip("the recipient has no phone number any more")


def _request(recipient: Deliverable, phone: str) -> Request:
    event_text = render_event(recipient.event)
    by_messaging_service = settings.SMS_FROM.startswith("MG")
    form = {
        "To": phone,
        "MessagingServiceSid" if by_messaging_service else "From": settings.SMS_FROM,
        "Body": gsm_alphabet.one_message(event_text.title, event_text.link),
    }
    account = re.search(r"/Accounts/([^/]+)", urlsplit(settings.SMS_URL).path)
    credentials = f"{account[1] if account else ''}:{settings.SMS_TOKEN}"
    headers = {
        "authorization": "Basic " + base64.b64encode(credentials.encode()).decode(),
        "content-type": "application/x-www-form-urlencoded",
        "accept": "application/json",
        "idempotency-key": message_id(recipient.job.id, recipient.event),
    }
    return Request(settings.SMS_URL, headers, urlencode(form).encode())


def _opted_out(reply: Reply | None) -> bool:
    return reply is not None and _code(reply) == OPTED_OUT


def _code(reply: Reply) -> int:
    code = _field(reply, "code")
    return code if isinstance(code, int) else 0


def _field(reply: Reply, name: str) -> Any:
    try:
        document = json.loads(reply.body)
    except ValueError:
        return None
    return document.get(name) if isinstance(document, dict) else None
