"""Convert messages of a bus to events.

Messages have no numbers. So the `source_id` of an event is a digest of the message's routing key,
its body, and its message id, else the broker's timestamp, else the five-minute window in which it
arrived. Only a message with neither id nor timestamp is recorded twice if it is delivered again in
another window, and once if two equal messages arrive in one window.
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
from tailrace.domains.builds.sources.record import new_event
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
    """Return the event for a message. Its type is found by the routing key."""
    return new_event(
        by_bus_key().get(message.routing_key.removeprefix(f"{namespace}.")),
        message.routing_key,
        _json(message.body),
        source=source,
        source_id=source_id(message),
        occurred_at=unix_time(message.timestamp),
    )


def source_id(message: BusMessage) -> str:
    """Return the digest that identifies a message."""
    window = int(clock.now().timestamp() // WINDOW_SECONDS)
    distinction = message.message_id or str(message.timestamp or f"w{window}")
    digest = hashlib.sha256()
    routing_key = message.routing_key.encode("utf-8", "replace")
    for part in (routing_key, message.body, distinction.encode()):
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
