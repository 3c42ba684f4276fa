"""Convert messages of a bus to events.

Messages have no numbers. A `source_id` is a digest of the routing key, the body and the message id.
Without an id it is the broker's timestamp; without both, the five minutes of the message's arrival.
So a message that is delivered twice is normally recorded once. Without id and timestamp, a message
delivered again in the next five minutes is recorded twice, and two equal messages within five
minutes are recorded once. The bus allows nothing better.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kombu.message import Message

from tailrace.db import clock
from tailrace.domains.builds.event_types.catalogue import by_bus_key
from tailrace.domains.builds.event_types.source_problems import Unknown
from tailrace.domains.builds.unix_time import unix_time
from tailrace.events.publish import NewEvent

WINDOW_SECONDS = 300


@dataclass(frozen=True, slots=True)
class BusMessage:
    """The parts of a message that are used."""

    routing_key: str
    body: bytes
    message_id: str = ""
    timestamp: int | None = None


def to_event(message: BusMessage, namespace: str, source: str) -> NewEvent:
    """Return the event of a message: the type of its routing key, or `builds.unknown`."""
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
    """Return the digest that identifies a message; see the top of this module."""
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
    """Return the used parts of a message as it came from the broker."""
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
    """Return the parsed body; its text if it is not JSON."""
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text[:10_000]
