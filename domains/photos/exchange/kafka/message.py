"""A Kafka message, and the conversion of an event to a message."""

import json
from dataclasses import dataclass
from typing import Self

from tailrace.events.publish import Recorded

Header = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Message:
    """A message to a topic."""

    topic: str
    key: bytes | None
    """Messages with the same key go to the same partition, so they keep their order."""
    value: bytes | None
    headers: list[Header]

    @classmethod
    def of_deletion(cls, event: Recorded, topic: str, key: str) -> Self:
        """Return a message without a value: in a compacted topic it replaces earlier messages with
        this key."""
        message = cls.of(event, topic, key)
        headers = [header for header in message.headers if header[0] != "content-type"]
        return cls(topic, message.key, None, headers)

    @classmethod
    def of(cls, event: Recorded, topic: str, key: str) -> Self:
        """Return the message of an event: its payload as JSON, its other fields as headers. A
        message that is sent again has the same `event-id`."""
        value = json.dumps(event.raw_payload, ensure_ascii=False, separators=(",", ":"))
        headers = {
            "event-id": str(event.id),
            "event-type": event.type,
            "event-time": event.occurred_at.isoformat(),
            "event-subject": event.subject,
            "content-type": "application/json",
        }
        return cls(topic, key.encode(), value.encode(), as_headers(headers))


def as_headers(texts: dict[str, str]) -> list[Header]:
    """Return the headers in Kafka's format."""
    return [(name, text.encode(errors="replace")) for name, text in texts.items()]
