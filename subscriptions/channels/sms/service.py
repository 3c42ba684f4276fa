"""Requests to the SMS service, and the interpretation of its replies."""

import base64
import json
import re
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.urls import reverse

from tailrace.db.query import database_now
from tailrace.jobs.destinations.delivery import DeliveryResult, DeliveryStatus
from tailrace.net.http_client import Reply, Request

# Error codes and statuses of the service.
OPTED_OUT = 21610
TOO_MANY_REQUESTS = 20429
UNAUTHORIZED = (401, 403, 404)
"""HTTP statuses: the account, its token or the URL in the settings is wrong."""

SENT_AT = "sent_at"
"""The query parameter of `status_url` with the time at which the text was sent."""
PHONE_NUMBER = re.compile(r"\+?\d{6,}")
"""Phone numbers, which are removed from the service's error messages."""


def status_url(query: str) -> str:
    """Return the URL, with this query, to which the service reports the state of a text."""
    return f"{settings.PUBLIC_URL}{reverse('sms_status')}{f'?{query}' if query else ''}"


def text_request(phone: str, body: str, key: str) -> Request:
    """Return the request that sends a text; `key` is its idempotency key. With an https PUBLIC_URL,
    the service reports the text's state to `callback.sms_status`."""
    by_messaging_service = settings.SMS_FROM.startswith("MG")
    form = {
        "To": phone,
        "MessagingServiceSid" if by_messaging_service else "From": settings.SMS_FROM,
        "Body": body,
    }
    if settings.PUBLIC_URL.startswith("https://"):
        # The service signs the URL together with its report, so an old report cannot look new.
        form["StatusCallback"] = status_url(f"{SENT_AT}={database_now().timestamp():.6f}")
    account = re.search(r"/Accounts/([^/]+)", urlsplit(settings.SMS_URL).path)
    credentials = f"{account[1] if account else ''}:{settings.SMS_TOKEN}"
    headers = {
        "authorization": "Basic " + base64.b64encode(credentials.encode()).decode(),
        "content-type": "application/x-www-form-urlencoded",
        "accept": "application/json",
        "idempotency-key": key,
    }
    return Request(settings.SMS_URL, headers, urlencode(form).encode())


def result_of(reply: Reply, status: int) -> DeliveryResult:
    """Return the result of a reply, from its status and the error code in its body."""
    if 200 <= status < 300:
        result = {"status": status, "sid": field_of(reply, "sid")}
        return DeliveryResult(DeliveryStatus.SENT, result=result)
    message = PHONE_NUMBER.sub("…", str(field_of(reply, "message") or "no reason"))
    reason = f"answered {status}: {message}"[:300]
    if code := code_of(reply):
        reason = f"{reason} ({code})"
    if code == TOO_MANY_REQUESTS or status in (408, 429) or status >= 500:
        return DeliveryResult(DeliveryStatus.FAILED, reason, reply.retry_after)
    if status in UNAUTHORIZED and code != OPTED_OUT:
        reason = f"{reason}: check SMS_URL and SMS_TOKEN"
        return DeliveryResult(DeliveryStatus.UNAVAILABLE, reason)
    return DeliveryResult(DeliveryStatus.REJECTED, reason)


def code_of(reply: Reply) -> int:
    """Return the error code in the reply's body, or 0."""
    code = field_of(reply, "code")
    return code if isinstance(code, int) else 0


def field_of(reply: Reply, name: str) -> Any:
    try:
        document = json.loads(reply.body)
    except ValueError:
        return None
    return document.get(name) if isinstance(document, dict) else None
