"""The message bus as a source: listens to a topic exchange with a queue of its own.

The bus has no numbers. A `source_id` is a digest of routing key, body, and what tells two equal
messages apart: the message id if the sender gave one, else the broker's timestamp, else the
five minutes in which it came. So a message that is delivered twice is recorded once, as a rule;
without id and timestamp, one delivered again in the next window is recorded twice, and two equal
facts within one window become one. That is the best that the bus allows.
"""

import hashlib
import json
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import structlog
from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from kombu import Connection, Consumer, Exchange, Queue
from kombu.message import Message

from domains.builds.event_types import Unknown, by_bus_key
from domains.builds.sources.record import record
from events import clock
from events.publish import NewEvent

log = structlog.get_logger(__name__)

WINDOW_SECONDS = 300
PREFETCH = 100
HEARTBEAT_SECONDS = 20
LONGEST_WAIT = 60.0


def address(url: str) -> tuple[str, str, str]:
    """Split BUS_SOURCE_URL, `amqps://user:password@host/vhost?exchange=pubsub&queue=mine`.

    Returns the URL without its query, the exchange (`pubsub` by default) and the queue ("").
    """
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    named = [
        query.get(key, [default])[-1] for key, default in (("exchange", "pubsub"), ("queue", ""))
    ]
    return parts._replace(query="").geturl(), named[0], named[1]


@dataclass(slots=True)
class BusSource:
    """Listens until `stop` is set. A message is acknowledged when its event is committed.

    The exchange must exist (it is declared passively). Without a queue name the broker makes a
    queue that lives as long as the connection; a named one is durable and keeps what comes while
    nobody listens, where the broker allows it.
    """

    url: str
    namespace: str
    exchange: str = "pubsub"
    queue: str = ""
    stop: threading.Event = field(default_factory=threading.Event)
    listening: Callable[[], None] = lambda: None
    """Called each time the queue is bound and messages can come."""
    events: int = 0

    @property
    def source(self) -> str:
        parts = urlsplit(self.url)
        return f"bus:{parts.hostname}/{self.exchange}"

    def run(self) -> None:
        """Listen, and connect again with growing waits whenever the bus goes away."""
        failures = 0
        while not self.stop.is_set():
            before = self.events
            try:
                self._listen()
            except Exception as error:
                # Whatever the bus does (refused, reset, exchange missing), it is tried again.
                failures = 1 if self.events > before else failures + 1
                wait = min(LONGEST_WAIT, 2.0 ** (failures - 1))
                log.warning("bus.lost", bus=self.source, error=_describe(error), retry_in=wait)
                self.stop.wait(wait)
        connections.close_all()

    def _listen(self) -> None:
        with self._connection() as connection:
            channel: Any = connection.channel()
            channel.basic_qos(0, PREFETCH, False)
            # `on_message` gets bodies as they came: one that is not JSON is for us to judge.
            with Consumer(channel, [self._queue()], on_message=self._receive):
                log.info("bus.listening", bus=self.source, queue=self.queue or "(own)")
                self.listening()
                self._drain(connection)

    def _drain(self, connection: Connection) -> None:
        checked = time.monotonic()
        while not self.stop.is_set():
            with suppress(TimeoutError):
                connection.drain_events(timeout=0.5)
            if time.monotonic() - checked > HEARTBEAT_SECONDS / 4:
                connection.heartbeat_check()
                checked = time.monotonic()

    def _connection(self) -> Connection:
        secure: bool | dict[str, Any] = False
        if self.url.startswith("amqps"):
            secure = {"cert_reqs": ssl.CERT_REQUIRED}
        return Connection(
            self.url, ssl=secure, heartbeat=HEARTBEAT_SECONDS, connect_timeout=10,
            transport_options={"client_properties": {"product": "tailrace"}},
        )  # fmt: skip

    def _queue(self) -> Queue:
        exchange = Exchange(self.exchange, type="topic", durable=True, passive=True)
        own = not self.queue
        return Queue(
            self.queue, exchange, routing_key=f"{self.namespace}.#",
            durable=not own, exclusive=own, auto_delete=own,
        )  # fmt: skip

    def _receive(self, message: Message) -> None:
        """Record a message and acknowledge it; the database being away is waited for."""
        event = to_event(_read(message), self.namespace, self.source)
        while not self.stop.is_set():
            try:
                close_old_connections()
                self.events += len(record([event]))
                message.ack()
                return
            except (DatabaseError, InterfaceError) as error:
                log.warning("bus.database_away", bus=self.source, error=_describe(error))
                self.stop.wait(2)
        message.requeue()


@dataclass(frozen=True, slots=True)
class Delivered:
    """What is used of a message."""

    routing_key: str
    body: bytes
    message_id: str = ""
    timestamp: int | None = None


def to_event(message: Delivered, namespace: str, source: str) -> NewEvent:
    """Return the event of a message: of the type of its routing key, or `builds.unknown`."""
    key = message.routing_key.removeprefix(f"{namespace}.")
    found, values = by_bus_key().get(key), _json(message.body)
    envelope: dict[str, Any] = {
        "source": source,
        "source_id": source_id(message),
        "occurred_at": _time(message.timestamp),
    }
    if found is None or not isinstance(values, dict):
        return NewEvent(Unknown, {"raw_type": message.routing_key, "data": values}, **envelope)
    return NewEvent(found, values, actor=found.actor(values), **envelope)


def source_id(message: Delivered) -> str:
    """Return the digest that stands for a message; see the top of this file."""
    window = int(clock.now().timestamp() // WINDOW_SECONDS)
    apart = message.message_id or str(message.timestamp or f"w{window}")
    digest = hashlib.sha256()
    for part in (message.routing_key.encode("utf-8", "replace"), message.body, apart.encode()):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def _read(message: Message) -> Delivered:
    body: Any = message.body
    stamp = message.properties.get("timestamp")
    if isinstance(stamp, datetime):
        stamp = int(stamp.replace(tzinfo=stamp.tzinfo or UTC).timestamp())
    return Delivered(
        routing_key=str(message.delivery_info.get("routing_key", "")),
        body=body.encode() if isinstance(body, str) else bytes(body or b""),
        message_id=str(message.properties.get("message_id") or ""),
        timestamp=stamp if isinstance(stamp, int) else None,
    )


def _json(body: bytes) -> Any:
    """Return what the body says; its text if it is not JSON."""
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text[:10_000]


def _time(stamp: int | None) -> datetime | None:
    try:
        return None if stamp is None else datetime.fromtimestamp(stamp, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
