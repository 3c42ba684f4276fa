"""The base class of channels that send over HTTP: webhooks, push services, the SMS service."""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from tailrace.events.publish import Recorded
from tailrace.jobs.destinations.delivery import DeliveryResult
from tailrace.jobs.destinations.handler import DestinationHandler
from tailrace.jobs.destinations.replies import result_of_reply
from tailrace.jobs.handler import Backoff
from tailrace.net.http_client import Reply, Request
from tailrace.net.shared_client import shared_client
from tailrace.subscriptions.channels.base import Channel
from tailrace.subscriptions.models import Device, Endpoint
from tailrace.subscriptions.types.recipient import Recipient


@dataclass(slots=True)
class HttpMessage:
    """The request of one job, and the reply after it was sent."""

    request: Request
    reply: Reply | None = None


M = TypeVar("M", bound=HttpMessage)
R = TypeVar("R", Device, Endpoint)


class HttpChannel(DestinationHandler[M], Channel, Generic[M]):
    """A channel that POSTs a message per job. A subclass implements `prepare`, and may override
    `result_of`."""

    offered_like = "web"
    public_only: ClassVar[bool] = True
    """Whether only public IP addresses are allowed: true if users choose the URLs."""
    max_attempts = 6
    backoff = Backoff(30, 300, 1800, 7200)
    claim_timeout = 60
    time_limit = 60

    async def send(self, message: M) -> DeliveryResult:
        message.reply = await shared_client(public_only=self.public_only).send(message.request)
        return self.result_of(message.reply)

    def result_of(self, reply: Reply) -> DeliveryResult:
        return result_of_reply(reply)


def addresses_of(
    recipients: Iterable[Recipient], rows: Iterable[R]
) -> Iterator[tuple[Recipient, R]]:
    """Yield each recipient with each of its rows: devices or endpoints."""
    by_user: dict[int, list[R]] = defaultdict(list)
    for row in rows:
        by_user[row.user_id].append(row)
    yield from ((each, row) for each in recipients for row in by_user.get(each.user_id or 0, ()))


def compact_json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="replace")


def message_id(job_id: int, event: Recorded) -> str:
    """Return the id of the job's message, the same for each attempt and replay."""
    identity = f"{job_id} {event.source} {event.source_id}"
    return f"msg_{job_id}_{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
