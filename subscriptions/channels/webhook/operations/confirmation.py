"""Confirm that the owner of a URL wants an endpoint's messages (WEBHOOK_CONFIRM): the URL has to
reply with a challenge. An endpoint is confirmed until its URL changes."""

import json
import secrets
from typing import Any

from asgiref.sync import sync_to_async
from pydantic import BaseModel

from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Permanent, Retry, Skip, Snooze
from tailrace.net.encryption import DecryptionError
from tailrace.net.http_client import Reply
from tailrace.net.shared_client import shared_client
from tailrace.subscriptions.channels.webhook.hosts import wait_for
from tailrace.subscriptions.channels.webhook.message import body_of_challenge, request_to
from tailrace.subscriptions.models import Endpoint


class ConfirmEndpoint(Handler):
    """Send a challenge to an endpoint's URL; the endpoint is confirmed if the reply contains it."""

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
            raise Skip("the endpoint was deleted, or is already confirmed")
        if wait := await sync_to_async(wait_for)(endpoint.url):
            raise Snooze("the rate limit of its host is reached", seconds=wait)
        challenge = secrets.token_urlsafe(24)  # not stored, since the reply contains it
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
    """Raise Retry or Permanent if the reply does not confirm the endpoint."""
    if reply.refused:
        raise Permanent(reply.error)
    if not reply.arrived or reply.status is None or reply.status >= 500:
        raise Retry(reply.error or f"answered {reply.status}")
    if not 200 <= reply.status < 300 or not _is_answer(reply.text, challenge):
        raise Permanent(
            f"answered {reply.status} without the challenge: the response body has to be"
            ' {"challenge": "…"} with the received challenge'
        )


def _is_answer(text: str, challenge: str) -> bool:
    """Return whether the text contains only the challenge: an echo of the request does not."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return bool(answer == {"challenge": challenge})
