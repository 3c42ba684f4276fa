"""The mail to the owner of an endpoint that was disabled."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from pydantic import BaseModel

from jobs.backoff import Backoff
from jobs.handler import ClaimedJob, Handler
from jobs.outcomes import Skip
from net.sanitize import one_line
from subscriptions.channels.mail import transport
from subscriptions.models import Endpoint


class EndpointDisabled(Handler):
    """Mail an endpoint's owner that it was disabled, and why."""

    name = "subscriptions.endpoint_disabled"
    max_attempts = 10
    backoff = Backoff(60, 300, 900, 3600)

    class Payload(BaseModel):
        endpoint: int
        reason: str

    def handle(self, job: ClaimedJob) -> Any:
        endpoint = Endpoint.objects.select_related("user").filter(pk=job.payload.endpoint).first()
        if endpoint is None:
            raise Skip("the endpoint was deleted")
        if not endpoint.user.email or not endpoint.user.is_active:
            raise Skip("its owner has no mail address or is not active any more")
        transport.send(_message(endpoint, job.payload.reason, job.id))


def _message(endpoint: Endpoint, reason: str, job_id: int) -> EmailMessage:
    # Only the host: the path and query of an endpoint's URL may hold a token.
    host = urlsplit(endpoint.url).hostname or "?"
    context = {
        "endpoint": endpoint,
        "host": host,
        "reason": reason,
        "public_url": settings.PUBLIC_URL,
    }
    own_host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    return EmailMessage(
        subject=one_line(f"Your webhook endpoint at {host} was disabled"),
        body=render_to_string("subscriptions/endpoint_disabled.txt", context),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[endpoint.user.email],
        headers={
            "Message-ID": f"<endpoint.{endpoint.pk}.{job_id}@{own_host}>",
            "Auto-Submitted": "auto-generated",
        },
    )
