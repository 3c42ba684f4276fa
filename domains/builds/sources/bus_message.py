"""Convert messages of a bus to events.

Messages have no numbers. The `source_id` of an event is a digest of the message's routing key, body
and message id. If there is no message id, the digest includes the broker's timestamp instead; if
there is no timestamp either, it includes the five-minute window in which the message arrived.

So a message that is delivered twice is normally recorded once. Messages without id and timestamp
are an exception: a message that is delivered again in another window is recorded twice, and two
equal messages in one window are recorded once. The bus offers no better identification.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kombu.message import Message

from tailrace.db import clock
from tailrace.domains.builds.backends.unix_time import unix_time
from tailrace.domains.builds.event_types.catalogue import by_bus_key
from tailrace.domains.builds.event_types.source_problems import Unknown
from tailrace.events.publish import NewEvent

WINDOW_SECONDS = 300


@dataclass(frozen=True, slots=True)
class BusMessage:
    """The parts of a bus message from which its event is made."""

    routing_key: str
    body: bytes
    message_id: str = ""
    timestamp: int | None = None


def to_event(message: BusMessage, namespace: str, source: str) -> NewEvent:
    """Return the event for a message. Its type is found by the routing key; `builds.unknown` if the
    key is unknown or the body is not a JSON object."""
    key = message.routing_key.removeprefix(f"{namespace}.")
    event_type, values = by_bus_key().get(key), _json(message.body)
    envelope: dict[str, Any] = {
        "source": source,
        "source_id": source_id(message),
        "occurred_at": unix_time(message.timestamp),
    }
    if event_type is None or not isinstance(values, dict):
        return NewEvent(Unknown, {"raw_type": message.routing_key, "data": values}, **envelope)
    return NewEvent(event_type, values, actor=event_type.actor(values), **envelope)


def source_id(message: BusMessage) -> str:
    """Return the digest that identifies a message, as described at the top of this module."""
    window = int(clock.now().timestamp() // WINDOW_SECONDS)
    distinction = message.message_id or str(message.timestamp or f"w{window}")
    digest = hashlib.sha256()
    for part in (
        message.routing_key.encode("utf-8", "replace"),
        message.body,
        distinction.encode(),
    ):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def read_message(message: Message) -> BusMessage:
    """Convert a message from the broker."""
    body: Any = message.body
    stamp = message.properties.get("timestamp")
    if isinstance(stamp, datetime):
        stamp = int(stamp.replace(tzinfo=stamp.tzinfo or UTC).timestamp())
    return BusMessage(
        routing_key=str(message.delivery_info.get("routing_key", "")),
        body=body.encode() if isinstance(body, str) else bytes(body or b""),
        message_id=str(message.properties.get("message_id") or ""),
        timestamp=stamp if isinstance(stamp, int) else None,
    )


def _json(body: bytes) -> Any:
    """Return the parsed body, or its first 10,000 characters if it is not JSON."""
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text[:10_000]
