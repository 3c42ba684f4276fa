"""The mail to the owner of an endpoint that was disabled."""

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from django.conf import settings
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from pydantic import BaseModel

from tailrace.jobs.handler import ClaimedJob
from tailrace.net.sanitize import one_line
from tailrace.subscriptions.channels.mail.mail_handler import MailHandler, OutgoingMail
from tailrace.subscriptions.models import Endpoint


class EndpointDisabled(MailHandler[OutgoingMail]):
    """Mail an endpoint's owner that it was disabled, and why."""

    name = "subscriptions.endpoint_disabled"

    class Payload(BaseModel):
        endpoint: int
        reason: str

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, OutgoingMail]]:
        rows = Endpoint.objects.select_related("user")
        endpoints = rows.in_bulk({job.payload.endpoint for job in jobs})
        for job in jobs:
            endpoint = endpoints.get(job.payload.endpoint)
            if endpoint is None:
                job.skip("the endpoint was deleted")
            elif not endpoint.user.email or not endpoint.user.is_active:
                job.skip("its owner has no mail address or is no longer active")
            else:
                yield job, OutgoingMail(_message(endpoint, job.payload.reason, job.id))


def _message(endpoint: Endpoint, reason: str, job_id: int) -> EmailMessage:
    # Only the host: the path and query of an endpoint's URL may contain a token.
    host = urlsplit(endpoint.url).hostname or "?"
    url = settings.PUBLIC_URL
    context = {"endpoint": endpoint, "host": host, "reason": reason, "public_url": url}
    own_host = urlsplit(url).hostname or "localhost"
    return EmailMessage(
        subject=one_line(f"Your webhook endpoint at {host} was disabled"),
        body=render_to_string("tailrace/subscriptions/endpoint_disabled.txt", context),
        from_email=settings.DEFAULT_FROM_EMAIL,
        to=[endpoint.user.email],
        headers={
            "Message-ID": f"<endpoint.{endpoint.pk}.{job_id}@{own_host}>",
            "Auto-Submitted": "auto-generated",
        },
    )
