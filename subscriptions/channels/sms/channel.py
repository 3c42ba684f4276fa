import base64
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings

from jobs.destinations.delivery import DeliveryResult, DeliveryStatus, postpone
from jobs.handler import ClaimedJob
from jobs.outcomes import Cancel
from net.http_client import Reply, Request
from subscriptions.channels import http_delivery
from subscriptions.channels.base import Deliverable, deliverable_jobs
from subscriptions.channels.http_delivery import (
    DestinationBatch,
    HttpChannel,
    HttpDelivery,
    message_id,
)
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


class Sms(HttpChannel):
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
    batch_size = 20

    @classmethod
    def deliveries(cls, recipients: Iterable[Recipient]) -> Iterator[NewDelivery]:
        for recipient in recipients:
            yield NewDelivery(recipient, str(recipient.key), LANE)

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        texts = list(_sendable(jobs))
        batch = _batch(texts)
        if batch is None:
            return
        http_delivery.send(self.name, [batch], public_only=False)
        http_delivery.set_outcomes(self.name, batch, LANE)
        for (_recipient, phone), delivery in zip(texts, batch.deliveries, strict=True):
            if delivery.reply is not None and _code(delivery.reply) == OPTED_OUT:
                # It may be illegal to send more; a person who wants texts enters the number again.
                Preferences.objects.filter(phone=phone).update(phone="")
                delivery.job.outcome = Cancel("the owner of the number opted out of texts")


Text = tuple[Deliverable, str]
"""A job that may be sent now, and its phone number."""


def _sendable(jobs: Sequence[ClaimedJob]) -> Iterator[Text]:
    """Yield the texts that may be sent now; set the outcomes of the other jobs."""
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


def _batch(texts: Sequence[Text]) -> DestinationBatch | None:
    """Return what the service is sent now; None if nothing, or if its breaker is open."""
    if not texts:
        return None
    name = f"{Sms.name}:{urlsplit(settings.SMS_URL).netloc}"
    batch = DestinationBatch(name, http_delivery.breaker_states([name])[name], _result_of)
    if batch.breaker_state.wait:
        jobs = [recipient.job for recipient, _phone in texts]
        postpone(jobs, "the SMS service's circuit breaker is open", batch.breaker_state.wait)
        return None
    batch.deliveries = [
        HttpDelivery(recipient.job, _request(recipient, phone)) for recipient, phone in texts
    ]
    return batch


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


def _result_of(reply: Reply) -> DeliveryResult:
    """Return what a reply means, by its status and the error code in its body."""
    if not reply.arrived or reply.status is None:
        return http_delivery.result_of(reply)
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
        return DeliveryResult(DeliveryStatus.UNAVAILABLE, f"{reason}: check SMS_URL and SMS_TOKEN")
    return DeliveryResult(DeliveryStatus.REJECTED, reason)


def _code(reply: Reply) -> int:
    code = _field(reply, "code")
    return code if isinstance(code, int) else 0


def _field(reply: Reply, name: str) -> Any:
    try:
        document = json.loads(reply.body)
    except ValueError:
        return None
    return document.get(name) if isinstance(document, dict) else None
