"""Publish to a topic exchange of RabbitMQ (amqp://, amqps://), with publisher confirms."""

import ssl
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qs, unquote

import amqp
from amqp.exceptions import AMQPError

from tailrace.domains.builds.destinations.base import Bus, Message
from tailrace.jobs.destinations.delivery import (
    NOT_TRIED,
    SENT,
    DeliveryResult,
    DeliveryStatus,
)

CONNECT_SECONDS = 5
ANSWER_SECONDS = 10
"""Timeout for answers of the broker, while connecting and for confirmations."""
IDLE_SECONDS = 60
"""A connection that was unused for longer is replaced, because it has sent no heartbeats."""
PERSISTENT = 2
UNSENT = {DeliveryStatus.UNAVAILABLE, DeliveryStatus.NOT_TRIED}

# Certificate errors and time-outs are OSErrors.
ERRORS = (AMQPError, OSError)


class AmqpBus(Bus):
    """Publishes to an existing exchange, `?exchange=` in the URL (default: pubsub)."""

    schemes = ("amqp", "amqps")

    def __init__(self, name: str, url: str) -> None:
        super().__init__(name, url)
        self.exchange = parse_qs(self.parts.query).get("exchange", ["pubsub"])[0]
        self.connection: amqp.Connection | None = None
        self.channel: amqp.Channel | None = None
        self.published = 0
        self.used_at = 0.0

    def send(self, messages: Sequence[Message]) -> list[DeliveryResult]:
        """Publish all messages, then wait for all confirmations."""
        reused, started = self.connection is not None, time.monotonic()
        results = self._try(messages)
        answered = {result.status for result in results} - UNSENT
        if reused and not answered and time.monotonic() - started < CONNECT_SECONDS:
            # The broker may have closed the idle connection: try once more with a new one.
            results = self._try(messages)
        return results

    def close(self) -> None:
        connection, self.connection, self.channel = self.connection, None, None
        if connection is not None:
            connection.collect()

    def _try(self, messages: Sequence[Message]) -> list[DeliveryResult]:
        confirmations = Confirmations(len(messages))
        try:
            self._publish(messages, self._connect(), confirmations)
        except ERRORS as error:
            self.close()
            return confirmations.results(self._reason(error))
        self.used_at = time.monotonic()
        return confirmations.results()

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
            sent = amqp.Message(
                message.body,
                content_type=message.content_type,
                content_encoding="utf-8",
                delivery_mode=PERSISTENT,
                message_id=message.message_id,
            )
            channel.basic_publish(sent, self.exchange, message.key)
            self.published += 1
        deadline = time.monotonic() + ANSWER_SECONDS
        while confirmations.missing():
            channel.connection.drain_events(timeout=max(deadline - time.monotonic(), 0.01))

    def _reason(self, error: BaseException) -> str:
        if isinstance(error, amqp.NotFound):
            return f"{self.describe(error)} (the exchange {self.exchange!r} must exist)"
        if isinstance(error, TimeoutError):
            return f"{self.describe(error)} (no answer for {ANSWER_SECONDS} s)"
        return self.describe(error)


class Confirmations:
    """The messages of one batch that the broker accepted or rejected, by delivery tag."""

    def __init__(self, expected: int) -> None:
        self._results: list[DeliveryResult | None] = [None] * expected
        self.base = 0
        """The last delivery tag before this batch. Tags count from 1 in each channel."""

    def ack(self, tag: int, multiple: bool) -> None:
        self._set_results(tag - self.base, multiple, SENT)

    def nack(self, tag: int, multiple: bool) -> None:
        rejected = DeliveryResult(DeliveryStatus.FAILED, "the broker rejected the message")
        self._set_results(tag - self.base, multiple, rejected)

    def missing(self) -> bool:
        """Return whether a message of the batch is not confirmed yet."""
        return None in self._results

    def results(self, reason: str = "") -> list[DeliveryResult]:
        """Return the results. The first unconfirmed message is UNAVAILABLE, others NOT_TRIED."""
        first = self._results.index(None) if self.missing() else None
        unavailable = DeliveryResult(DeliveryStatus.UNAVAILABLE, reason)
        return [
            result or (unavailable if index == first else NOT_TRIED)
            for index, result in enumerate(self._results)
        ]

    def _set_results(self, count: int, multiple: bool, result: DeliveryResult) -> None:
        """Set the result of the message number `count`, with `multiple` of all up to it."""
        for index in range(0 if multiple else count - 1, count):
            if self._results[index] is None:
                self._results[index] = result
