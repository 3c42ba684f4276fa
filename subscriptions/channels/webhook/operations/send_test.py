"""Send a test delivery to an endpoint, and record its result."""

from typing import Any

from asgiref.sync import sync_to_async
from pydantic import BaseModel

from tailrace.db import clock
from tailrace.events.types import find_type
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Skip, Snooze
from tailrace.net.encryption import DecryptionError
from tailrace.net.http_client import Reply
from tailrace.net.shared_client import shared_client
from tailrace.subscriptions.channels.webhook.hosts import wait_for
from tailrace.subscriptions.channels.webhook.message import body_of_sample, body_of_test, request_to
from tailrace.subscriptions.models import Delivery, Endpoint


class SendTest(Handler):
    """POST a test to an endpoint once, in any of its states. The result is the delivery's id."""

    name = "subscriptions.webhook_test"
    fair = True
    concurrency = 100
    per_destination = 1
    max_attempts = 2
    backoff = Backoff(5)
    time_limit = 60

    class Payload(BaseModel):
        endpoint: int
        message_id: str
        event_type: str = ""
        """Send a sample of this type; empty: a message of the type tailrace.test."""

    async def handle(self, job: ClaimedJob) -> dict[str, Any]:
        endpoint = await Endpoint.objects.filter(pk=job.payload.endpoint).afirst()
        if endpoint is None:
            raise Skip("the endpoint was deleted")
        if not endpoint.confirmed:
            raise Skip("the endpoint's URL is not confirmed")
        if wait := await sync_to_async(wait_for)(endpoint.url):
            raise Snooze("the rate limit of its host is reached", seconds=wait)
        reply = await _send(endpoint, job.payload)
        delivery = await sync_to_async(_record)(endpoint, job, reply)
        return {"delivery": delivery.pk}


async def _send(endpoint: Endpoint, payload: SendTest.Payload) -> Reply:
    try:
        body = await sync_to_async(_body)(payload.event_type)
        request = request_to(endpoint, payload.message_id, body)
    except DecryptionError as error:
        return Reply(error=f"the endpoint's secret cannot be read: {error}")
    return await shared_client(public_only=True).send(request)


def _body(type_name: str) -> bytes:
    event_type = find_type(type_name)
    return body_of_sample(event_type) if event_type else body_of_test()


def _record(endpoint: Endpoint, job: ClaimedJob, reply: Reply) -> Delivery:
    ok = reply.arrived and 200 <= (reply.status or 0) < 300
    return Delivery.objects.create(
        endpoint=endpoint,
        message_id=job.payload.message_id,
        attempt=job.attempt,
        at=clock.now(),
        milliseconds=reply.milliseconds,
        status=reply.status,
        outcome=Delivery.Outcome.OK if ok else Delivery.Outcome.FAILED,
        error="" if ok else reply.error or f"answered {reply.status}",
        answer=reply.text,
    )
