"""amqp://, amqps://: a topic exchange of RabbitMQ or the like, each message confirmed."""

import ssl
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, unquote

import amqp
from amqp.exceptions import AMQPError

from domains.builds.bus.base import SENT, UNTRIED, Bus, Delivery, Fate, Message

CONNECT_SECONDS = 5
ANSWER_SECONDS = 10
"""How long the broker may be silent: while connecting, and while confirmations are due."""
IDLE_SECONDS = 60
"""A connection unused for longer is made anew: it has no heartbeat while it rests."""
PERSISTENT = 2

# Certificate errors and time-outs are OSErrors.
ERRORS = (AMQPError, OSError)


class AmqpBus(Bus):
    """Publishes to `?exchange=` (pubsub), which has to exist: it is declared passively."""

    schemes = ("amqp", "amqps")

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name, url)
        self.exchange = parse_qs(self.parts.query).get("exchange", ["pubsub"])[0]
        self.connection: amqp.Connection | None = None
        self.channel: amqp.Channel | None = None
        self.published = 0
        self.used_at = 0.0

    def send(self, messages: Sequence[Message]) -> list[Delivery]:
        """Publish all, then wait for the confirmations of all."""
        kept, began = self.connection is not None, time.monotonic()
        deliveries = self._try(messages)
        if kept and _none_sent(deliveries) and time.monotonic() - began < CONNECT_SECONDS:
            # The broker closed the kept connection while it rested; a new one decides.
            deliveries = self._try(messages)
        return deliveries

    def close(self) -> None:
        connection, self.connection, self.channel = self.connection, None, None
        if connection is not None:
            connection.collect()

    def _try(self, messages: Sequence[Message]) -> list[Delivery]:
        confirmations = Confirmations(len(messages))
        try:
            self._publish(messages, self._connect(), confirmations)
        except ERRORS as error:
            self.close()
            return confirmations.deliveries(self._what_failed(error))
        self.used_at = time.monotonic()
        return confirmations.deliveries()

    def _connect(self) -> amqp.Channel:
        if self.connection is not None and time.monotonic() - self.used_at > IDLE_SECONDS:
            self.close()
        if self.channel is None:
            self.connection = amqp.Connection(**self._address())
            self.connection.connect()
            self.channel = self.connection.channel()
            self.channel.exchange_declare(self.exchange, "topic", passive=True)
            self.channel.confirm_select()
            self.published = 0
        return self.channel

    def _address(self) -> dict[str, Any]:
        parts = self.parts
        secure = parts.scheme == "amqps"
        host = parts.hostname or "localhost"
        name = f"[{host}]" if ":" in host else host
        tls = {"context": ssl.create_default_context(), "server_hostname": host}
        return {
            "host": f"{name}:{parts.port or (5671 if secure else 5672)}",
            "userid": unquote(parts.username or "guest"),
            "password": unquote(parts.password or "guest"),
            "virtual_host": unquote(parts.path[1:]) or "/",
            "login_method": "PLAIN",
            "ssl": tls if secure else False,
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": ANSWER_SECONDS,
            "write_timeout": ANSWER_SECONDS,
        }

    def _publish(
        self, messages: Sequence[Message], channel: amqp.Channel, confirmations: "Confirmations"
    ) -> None:
        confirmations.base = self.published
        events: dict[str, set[Any]] = channel.events  # type: ignore[attr-defined]
        events["basic_ack"] = {confirmations.ack}
        events["basic_nack"] = {confirmations.nack}
        for message in messages:
            channel.basic_publish(_wrapped(message), self.exchange, message.key)
            self.published += 1
        until = time.monotonic() + ANSWER_SECONDS
        while confirmations.missing():
            channel.connection.drain_events(timeout=max(until - time.monotonic(), 0.01))

    def _what_failed(self, error: BaseException) -> str:
        if isinstance(error, amqp.NotFound):
            return f"{self.why(error)} (the exchange {self.exchange!r} has to exist)"
        if isinstance(error, TimeoutError):
            return f"{self.why(error)} (silent for {ANSWER_SECONDS} s)"
        return self.why(error)


class Confirmations:
    """Which messages of one batch the broker has taken or refused, by delivery tag."""

    def __init__(self, expected: int) -> None:
        self.known: list[Delivery | None] = [None] * expected
        self.base = 0
        """The delivery tag before the batch's first: tags count from one in each channel."""

    def ack(self, tag: int, multiple: bool) -> None:
        self._note(tag - self.base, multiple, SENT)

    def nack(self, tag: int, multiple: bool) -> None:
        refused = Delivery(Fate.FAILED, "the broker did not take the message")
        self._note(tag - self.base, multiple, refused)

    def missing(self) -> bool:
        return None in self.known

    def deliveries(self, reason: str = "") -> list[Delivery]:
        """Return the fate of each message: the first that is not known bears the reason."""
        fates = []
        blamed = False
        for delivery in self.known:
            if delivery is None:
                delivery = UNTRIED if blamed else Delivery(Fate.DOWN, reason)
                blamed = True
            fates.append(delivery)
        return fates

    def _note(self, place: int, multiple: bool, delivery: Delivery) -> None:
        for index in range(0 if multiple else place - 1, place):
            if self.known[index] is None:
                self.known[index] = delivery


def _none_sent(deliveries: Sequence[Delivery]) -> bool:
    return all(delivery.fate in (Fate.DOWN, Fate.UNTRIED) for delivery in deliveries)


def _wrapped(message: Message) -> amqp.Message:
    return amqp.Message(
        message.body,
        content_type="application/json",
        content_encoding="utf-8",
        delivery_mode=PERSISTENT,
        message_id=str(message.id),
    )
