"""Record the events that a build service publishes on its message bus (a topic exchange)."""

import ssl
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import structlog
from django.db import DatabaseError, InterfaceError, close_old_connections, connections
from kombu import Connection, Consumer, Exchange, Queue, binding
from kombu.message import Message

from tailrace.domains.builds.event_types.metric import METRICS_KEY
from tailrace.domains.builds.sources.bus_message import read_message, to_event
from tailrace.domains.builds.sources.record import record

log = structlog.get_logger(__name__)

PREFETCH = 100
HEARTBEAT_SECONDS = 20
MAX_WAIT_SECONDS = 60.0


def split_url(url: str) -> tuple[str, str, str]:
    """Split BUS_SOURCE_URL, `amqps://user:password@host/vhost?exchange=pubsub&queue=mine`, into the
    URL without its query, the exchange (default: `pubsub`) and the queue ("")."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    exchange, queue = query.get("exchange", ["pubsub"])[-1], query.get("queue", [""])[-1]
    return parts._replace(query="").geturl(), exchange, queue


@dataclass(slots=True)
class BusConsumer:
    """Records events until `stop` is set. A message is acknowledged after its event is committed.

    The exchange must exist. Without a queue name, the broker creates a temporary queue, which it
    deletes when the connection ends. A named queue is durable.
    """

    url: str
    namespace: str
    exchange: str = "pubsub"
    queue: str = ""
    keys: Sequence[str] = ("#",)
    """Patterns of the routing keys to read, without the namespace."""
    stop: threading.Event = field(default_factory=threading.Event)
    on_listening: Callable[[], None] = lambda: None
    """Called after each connection, when the queue is bound and messages can arrive."""
    events: int = 0
    """Number of recorded events."""

    @property
    def source(self) -> str:
        return f"bus:{urlsplit(self.url).hostname}/{self.exchange}"

    def run(self) -> None:
        """Consume messages. After an error, wait and connect again; the waits increase."""
        failures = 0
        while not self.stop.is_set():
            events_before = self.events
            try:
                self._listen()
            except Exception as error:
                # Any error leads to a new attempt: refused, reset, exchange missing.
                failures = 1 if self.events > events_before else failures + 1
                wait = min(MAX_WAIT_SECONDS, 2.0 ** (failures - 1))
                log.warning(
                    "bus.disconnected", bus=self.source, error=_describe(error), retry_in=wait
                )
                self.stop.wait(wait)
        connections.close_all()

    def _listen(self) -> None:
        with self._connection() as connection:
            channel: Any = connection.channel()
            channel.basic_qos(0, PREFETCH, False)
            # `on_message` gets raw bodies. `to_event` handles bodies that are not JSON.
            with Consumer(channel, [self._queue()], on_message=self._receive):
                log.info("bus.listening", bus=self.source, queue=self.queue or "(own)")
                self.on_listening()
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
        secure = {"cert_reqs": ssl.CERT_REQUIRED} if self.url.startswith("amqps") else False
        return Connection(
            self.url, ssl=secure, heartbeat=HEARTBEAT_SECONDS, connect_timeout=10,
            transport_options={"client_properties": {"product": "tailrace"}},
        )  # fmt: skip

    def _queue(self) -> Queue:
        exchange = Exchange(self.exchange, type="topic", durable=True, passive=True)
        bindings = [binding(exchange, routing_key=f"{self.namespace}.{key}") for key in self.keys]
        temporary = not self.queue
        return Queue(
            self.queue, bindings=bindings,
            durable=not temporary, exclusive=temporary, auto_delete=temporary,
        )  # fmt: skip

    def _receive(self, message: Message) -> None:
        """Record a message and acknowledge it. While the database is unavailable, try again."""
        received = read_message(message)
        if received.routing_key == f"{self.namespace}.{METRICS_KEY}":
            message.ack()  # a measurement, not an event
            return
        event = to_event(received, self.namespace, self.source)
        while not self.stop.is_set():
            try:
                close_old_connections()
                self.events += len(record([event]))
                message.ack()
                return
            except (DatabaseError, InterfaceError) as error:
                log.warning("bus.database_unavailable", bus=self.source, error=_describe(error))
                self.stop.wait(2)
        message.requeue()


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
