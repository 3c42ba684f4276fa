import base64
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.conf import settings

from events.publish import Recorded
from jobs.claimed import ClaimedJob
from jobs.destination import left_alone
from jobs.handler import Backoff, Handler
from jobs.outcomes import Cancel
from subscriptions import courier, devices, vapid
from subscriptions.audible import thread_of
from subscriptions.channels import base
from subscriptions.channels.base import Channel
from subscriptions.courier import Parcel, Share
from subscriptions.models import Device
from subscriptions.recipients import Told, still_told
from subscriptions.sending import Request
from subscriptions.story import tell

if TYPE_CHECKING:
    from subscriptions.audience import Heard

TTL = 86_400
"""Seconds that a push service keeps a message for a browser that is away."""
TITLE, BODY, LINK = 200, 1000, 1000
FITS = 3900
"""Bytes: encrypted, a message has 4096 at most."""
GONE = (404, 410)
AT_ONCE = 16
"""Messages to one push service, by one worker: a few services have all browsers."""


class Push(Channel):
    """Push an event to one browser of a user, encrypted for it alone."""

    name = "subscriptions.push"
    key = "push"
    offered_like = "web"
    reaches_user = (
        "EXISTS (SELECT FROM subscriptions_device d WHERE d.user_id = u.id AND d.gone_at IS NULL)"
        if settings.VAPID_PRIVATE_KEY and settings.VAPID_SUBJECT
        else "false"
    )
    lacking = "no browser to push to"
    fair = True
    batch_size = 50
    max_attempts = 6
    backoff = Backoff(30, 300, 1800, 7200)
    claim_timeout = 60
    time_limit = 120

    @classmethod
    def deliveries(cls, heard: "Iterable[Heard]") -> "Iterator[base.Delivery]":
        """One job per browser of each recipient, in the lane of its push service."""
        heard = list(heard)
        found: dict[int | None, list[tuple[int, str]]] = defaultdict(list)
        live = Device.objects.filter(user__in={one.user_id for one in heard}, gone_at=None)
        for user, id, url in live.values_list("user_id", "id", "url"):
            found[user].append((id, url))
        for one in heard:
            for id, url in found[one.user_id]:
                yield base.Delivery(one, f"{one.recipient}:device:{id}", service_of(url))

    handle = Handler.handle  # not one by one: see handle_batch

    def handle_batch(self, jobs: Sequence[ClaimedJob]) -> None:
        shares = list(_shares(jobs))
        courier.carry(self.name, [share for _service, share in shares])
        for service, share in shares:
            courier.settle(self.name, share, service)
            for parcel, reply in share.tried:
                if reply.arrived and reply.status in GONE:
                    devices.gone(_device_of(parcel.job))
                    parcel.job.outcome = Cancel(f"the browser is gone: answered {reply.status}")


def service_of(url: str) -> str:
    """Return the origin of a push service, cut for a lane."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"[:300]


def _shares(jobs: Sequence[ClaimedJob]) -> Iterator[tuple[str, Share]]:
    """Yield what each push service gets now; what its breaker does not let through waits."""
    told = list(still_told(jobs))
    found = Device.objects.in_bulk({one.place for one in told})
    by_service: dict[str, list[tuple[Told, Device]]] = defaultdict(list)
    for one in told:
        device = found.get(one.place)
        if device is None or device.user_id != one.user.pk or device.gone_at is not None:
            one.job.outcome = Cancel("the browser is gone")
        elif not vapid.is_set_up():
            one.job.outcome = Cancel("push is not set up: VAPID_PRIVATE_KEY, VAPID_SUBJECT")
        else:
            by_service[service_of(device.url)].append((one, device))
    gates = courier.gates(f"{Push.name}:{service}" for service in by_service)
    for service, those in by_service.items():
        share = Share(f"{Push.name}:{service}", gates[f"{Push.name}:{service}"], courier.usual)
        share.at_once = AT_ONCE
        if share.gate.wait:
            jobs = [one.job for one, _device in those]
            left_alone(jobs, "its push service is left alone for a while", share.gate.wait)
            continue
        token = vapid.authorization(service)
        for one, device in those:
            try:
                share.parcels.append(Parcel(one.job, _request(one, device, token)))
            except ValueError as error:  # its keys were checked when it was added
                one.job.fail(f"the browser's keys cannot be used: {error}")
        if share.parcels:
            yield service, share


def _request(one: Told, device: Device, token: str) -> Request:
    topic = _topic(one.event)
    headers = {
        "authorization": token,
        "content-encoding": "aes128gcm",
        "content-type": "application/octet-stream",
        "ttl": str(TTL),
        "topic": topic,
        "urgency": "normal",
    }
    return Request(device.url, headers, devices.encrypt(device, _text(one.event, topic)))


def _text(event: Recorded, topic: str) -> bytes:
    """Return what the service worker of the page shows, as JSON."""
    story = tell(event)
    told = {
        "title": story.title[:TITLE],
        "body": story.text[:BODY],
        "link": story.link if len(story.link.encode(errors="replace")) <= LINK else "",
        "tag": topic,
        "type": event.type,
        "event": event.id,
    }
    text = _json(told)
    while len(text) > FITS and told["body"]:
        told["body"] = story.text[: len(str(told["body"])) // 2]
        text = _json(told)
    return text


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def _topic(event: Recorded) -> str:
    """Return what the events on one thing share: a browser that is away gets the newest of them."""
    digest = hashlib.sha256(thread_of(event).encode(errors="replace")).digest()
    return base64.urlsafe_b64encode(digest)[:32].decode()


def _device_of(job: ClaimedJob) -> int:
    return int(job.routing_key.rpartition(":")[2])
