import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urlsplit

from django.conf import settings

from tailrace.events.publish import Recorded
from tailrace.jobs.destinations.handler import Delivery
from tailrace.jobs.handler import Cancel, ClaimedJob
from tailrace.net.http_client import Request
from tailrace.subscriptions.channels.base import Deliverable, deliverable_jobs
from tailrace.subscriptions.channels.http_channel import (
    HttpChannel,
    HttpMessage,
    addresses_of,
    compact_json,
)
from tailrace.subscriptions.channels.push import devices, vapid
from tailrace.subscriptions.models import Device
from tailrace.subscriptions.notifications.rendering.event_text import render_event
from tailrace.subscriptions.types.channel import NewDelivery
from tailrace.subscriptions.types.recipient import Recipient, address_id
from tailrace.subscriptions.types.subscribable import is_urgent, thread_of

TTL = 86_400
"""Seconds that a push service keeps a message for a browser that is offline."""
TITLE_LENGTH, BODY_LENGTH, LINK_BYTES = 200, 1000, 1000
MESSAGE_BYTES = 3900
"""The limit before encryption; an encrypted message may have 4096 bytes."""
GONE = (404, 410)


class Push(HttpChannel[HttpMessage]):
    """Push an event to one browser of a user, encrypted for this browser."""

    name = "subscriptions.push"
    key = "push"
    reaches_user = (
        "EXISTS (SELECT FROM tailrace_subscriptions_device d WHERE d.user_id = u.id"
        " AND d.gone_at IS NULL)"
        if settings.VAPID_PRIVATE_KEY and settings.VAPID_SUBJECT
        else "false"
    )
    unreachable_because = "no browser with push enabled"
    fair = True
    per_destination = 32
    """Concurrent requests of one process to one push service; few services serve all browsers."""

    @classmethod
    def deliveries(cls, recipients: Iterable[Recipient]) -> Iterator[NewDelivery]:
        """Yield one job per browser of each recipient, in the lane of its push service."""
        recipients = list(recipients)
        users = {recipient.user_id for recipient in recipients}
        live = list(Device.objects.filter(user__in=users, gone_at=None))
        for recipient, device in addresses_of(recipients, live):
            key = recipient.key.with_address("device", device.pk)
            yield NewDelivery(recipient, key, service_of(device.url))

    def prepare(self, jobs: Sequence[ClaimedJob]) -> Iterator[tuple[ClaimedJob, HttpMessage]]:
        tokens: dict[str, str] = {}
        for recipient, device in _sendable(jobs):
            service = service_of(device.url)
            if service not in tokens:
                tokens[service] = vapid.authorization(service)
            try:
                yield recipient.job, HttpMessage(_request(recipient, device, tokens[service]))
            except ValueError as error:  # unlikely: `devices.add` checks the keys
                recipient.job.fail(f"the browser's keys cannot be used: {error}")

    def finish(self, deliveries: Sequence[Delivery[HttpMessage]]) -> None:
        for delivery in deliveries:
            job, reply = delivery.job, delivery.message.reply
            if reply is not None and reply.arrived and reply.status in GONE:
                devices.mark_gone(address_id(job.routing_key))
                job.outcome = Cancel(f"the browser's subscription ended: {reply.status}")


def service_of(url: str) -> str:
    """Return the origin of a push service, cut to the length of a lane."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"[:300]


def _sendable(jobs: Sequence[ClaimedJob]) -> Iterator[tuple[Deliverable, Device]]:
    """Yield the jobs that may be sent now; set the outcomes of the others."""
    recipients = list(deliverable_jobs(jobs))
    known = Device.objects.in_bulk({recipient.address_id for recipient in recipients})
    for recipient in recipients:
        device = known.get(recipient.address_id)
        if device is None or device.user_id != recipient.user_id or device.gone_at is not None:
            recipient.job.outcome = Cancel("the browser was removed")
        elif not vapid.is_set_up():
            recipient.job.outcome = Cancel("push is not set up: VAPID_PRIVATE_KEY, VAPID_SUBJECT")
        else:
            yield recipient, device


def _request(recipient: Deliverable, device: Device, token: str) -> Request:
    topic = _topic(recipient.event)
    headers = {
        "authorization": token,
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        "ttl": str(TTL),
        "topic": topic,
        "urgency": "high" if is_urgent(recipient.event.event_type) else "normal",
    }
    message = _message(recipient.event, topic)
    return Request(device.url, headers, devices.encrypt(device, message))


def _message(event: Recorded, topic: str) -> bytes:
    """Return the message for the page's service worker, as JSON."""
    event_text = render_event(event)
    body, link = event_text.text[:BODY_LENGTH], event_text.link
    message = {
        "title": event_text.title[:TITLE_LENGTH],
        "body": body,
        "link": link if len(link.encode(errors="replace")) <= LINK_BYTES else "",
        "tag": topic,
        "type": event.type,
        "event": event.id,
    }
    while len(encoded := compact_json(message)) > MESSAGE_BYTES and body:
        message["body"] = body = body[: len(body) // 2]
    return encoded


def _topic(event: Recorded) -> str:
    """Return an id of the event's thread: an offline browser gets the newest message of each."""
    digest = hashlib.sha256(thread_of(event).encode(errors="replace")).digest()
    return base64.urlsafe_b64encode(digest)[:32].decode()
