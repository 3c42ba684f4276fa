"""Ask the owner of a URL whether they want what an endpoint sends (WEBHOOK_CONFIRM).

The URL is sent a challenge and has to answer with it. An endpoint is confirmed as long as its URL
is the one that answered.
"""

import json
import secrets
from typing import Any

from asgiref.sync import sync_to_async
from pydantic import BaseModel

from tailrace.jobs.backoff import Backoff
from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.jobs.outcomes import Permanent, Retry, Skip, Snooze
from tailrace.net.encryption import DecryptionError
from tailrace.net.http_client import Reply
from tailrace.net.shared_client import shared_client
from tailrace.subscriptions.channels.webhook.hosts import wait_for
from tailrace.subscriptions.channels.webhook.message import body_of_challenge, request_to
from tailrace.subscriptions.models import Endpoint


class ConfirmEndpoint(Handler):
    """Send an endpoint's URL a challenge; the endpoint is confirmed if it answers with it."""

    name = "subscriptions.webhook_confirm"
    fair = True
    concurrency = 100
    per_destination = 1
    max_attempts = 3
    backoff = Backoff(30, 300)
    time_limit = 60

    class Payload(BaseModel):
        endpoint: int

    async def handle(self, job: ClaimedJob) -> dict[str, Any]:
        endpoint = await Endpoint.objects.filter(pk=job.payload.endpoint).afirst()
        if endpoint is None or endpoint.confirmed:
            raise Skip("the endpoint was deleted, or is confirmed")
        if wait := await sync_to_async(wait_for)(endpoint.url):
            raise Snooze("its host has been sent as much as it may be", seconds=wait)
        challenge = secrets.token_urlsafe(24)  # in no table: the answer comes at once
        try:
            request = request_to(
                endpoint, f"msg_confirm_{job.id}_{job.claim_no}", body_of_challenge(challenge)
            )
        except DecryptionError as error:
            raise Permanent(f"the endpoint's secret cannot be read: {error}") from None
        reply = await shared_client(public_only=True).send(request)
        _check(reply, challenge)
        rows = Endpoint.objects.filter(pk=endpoint.pk, url=endpoint.url)
        return {"confirmed": await rows.aupdate(confirmed_url=endpoint.url)}


def _check(reply: Reply, challenge: str) -> None:
    """Raise the outcome of a reply that does not confirm."""
    if reply.refused:
        raise Permanent(reply.error)
    if not reply.arrived or reply.status is None or reply.status >= 500:
        raise Retry(reply.error or f"answered {reply.status}")
    if not 200 <= reply.status < 300 or not _is_answer(reply.text, challenge):
        raise Permanent(
            f"answered {reply.status}, without the challenge: it has to answer"
            ' {"challenge": "…"} with what it got'
        )


def _is_answer(text: str, challenge: str) -> bool:
    """Whether it is the challenge and nothing else: what sends all back confirms nothing."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(answer == {"challenge": challenge})
