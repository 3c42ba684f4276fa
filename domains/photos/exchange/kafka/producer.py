"""Send messages with this process's producer, and return the result of each."""

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.conf import settings

from tailrace.domains.photos.exchange.kafka.client import client_options, library
from tailrace.domains.photos.exchange.kafka.message import Message
from tailrace.jobs.destinations.delivery import NOT_TRIED, DeliveryResult, DeliveryStatus
from tailrace.net.process_cache import process_cache

DELIVERY_SECONDS = 10
"""How long the cluster may take to acknowledge a message, including all retries of the client."""
TOPIC_SECONDS = 3
"""How long an unknown topic may take to appear."""
MAX_MESSAGE_BYTES = 1_000_000
"""Most brokers have the same limit."""

# Names of librdkafka's errors.
REJECTED = (
    "MSG_SIZE_TOO_LARGE RECORD_LIST_TOO_LARGE INVALID_RECORD INVALID_TIMESTAMP _BAD_MSG".split()
)
"""The cluster will never accept this message."""
NO_TOPIC = "UNKNOWN_TOPIC_OR_PART _UNKNOWN_TOPIC _UNKNOWN_PARTITION".split()
UNAVAILABLE = [
    *NO_TOPIC,
    *"_MSG_TIMED_OUT _TIMED_OUT _TRANSPORT _ALL_BROKERS_DOWN _RESOLVE _SSL _FATAL".split(),
    *"_PURGE_QUEUE _PURGE_INFLIGHT".split(),
    *"_AUTHENTICATION SASL_AUTHENTICATION_FAILED TOPIC_AUTHORIZATION_FAILED".split(),
    *"CLUSTER_AUTHORIZATION_FAILED TOPIC_EXCEPTION BROKER_NOT_AVAILABLE".split(),
    *"LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION NOT_ENOUGH_REPLICAS".split(),
    *"NOT_ENOUGH_REPLICAS_AFTER_APPEND REQUEST_TIMED_OUT KAFKA_STORAGE_ERROR".split(),
]
"""No message can be written to the topic now."""


class Producer:
    """Sends messages to the cluster of the settings. It connects when it sends the first message.

    A message counts as sent when all in-sync replicas have it. If the result is unknown, the job
    sends it again, and it may be written twice: readers can recognise the copy by its `event-id`.
    """

    def __init__(self) -> None:
        """Raises KafkaNotInstalled, or KafkaException for options that the client rejects."""
        self.kafka = library()
        self.lock = threading.Lock()
        self.broken = False
        """Whether the client can no longer send, so that the producer must be replaced."""
        self.connection_error = ""
        """The last connection error."""
        options = {
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 5,
            "message.timeout.ms": DELIVERY_SECONDS * 1000,
            "topic.metadata.propagation.max.ms": TOPIC_SECONDS * 1000,
            "message.max.bytes": MAX_MESSAGE_BYTES,
            "error_cb": self._on_error,
        }
        self.client: Any = self.kafka.Producer(client_options(options))

    def send(self, messages: Sequence[Message]) -> list[DeliveryResult]:
        """Send the messages, wait for their acknowledgements, and return the result of each."""
        with self.lock:
            results = self._send(messages)
            if len(messages) > 1:
                # The cluster rejects a batch as a whole: send the messages one by one.
                for index, result in enumerate(results):
                    if result.status is DeliveryStatus.REJECTED and not self.broken:
                        results[index] = self._send([messages[index]])[0]
        return _charge_first(results)

    def _send(self, messages: Sequence[Message]) -> list[DeliveryResult]:
        self.connection_error = ""
        results: list[DeliveryResult | None] = [None] * len(messages)

        def on_delivery(index: int, error: Any, report: Any) -> None:
            if error:
                results[index] = self._result(error)
                return
            place = {"partition": report.partition(), "offset": report.offset()}
            results[index] = DeliveryResult(DeliveryStatus.SENT, result=place)

        for index, message in enumerate(messages):
            try:
                self.client.produce(
                    message.topic, message.value, message.key,
                    headers=message.headers, on_delivery=partial(on_delivery, index),
                )  # fmt: skip
            except self.kafka.KafkaException as error:
                results[index] = self._result(error.args[0])
            except BufferError:
                results[index] = NOT_TRIED
        self._flush(DELIVERY_SECONDS + 5)
        if None in results or self.broken:
            self._discard()
        reason = self._describe("the client reported no result")
        unknown = DeliveryResult(DeliveryStatus.UNAVAILABLE, reason)
        return [result or unknown for result in results]

    def _flush(self, seconds: float) -> None:
        try:
            self.client.flush(seconds)
        except self.kafka.KafkaException as error:
            self.broken = True
            self.connection_error = error.args[0].str()

    def _discard(self) -> None:
        """Drop the messages that the client has not sent yet. The jobs send them again, and the old
        copies must not arrive after later messages of the lane."""
        self.broken = True
        self.client.purge()
        self._flush(1)

    def _result(self, error: Any) -> DeliveryResult:
        if error.fatal() or error.name() == "_FATAL":
            self.broken = True
        text = error.str()
        if error.name() in NO_TOPIC:
            text += " (the topic has to exist: create it)"
        elif self.connection_error:
            text += f" ({self.connection_error})"
        status = DeliveryStatus.FAILED
        if error.name() in REJECTED:
            status = DeliveryStatus.REJECTED
        elif error.name() in UNAVAILABLE or error.fatal():
            status = DeliveryStatus.UNAVAILABLE
        return DeliveryResult(status, self._describe(text))

    def _describe(self, text: str) -> str:
        return f"{','.join(settings.PHOTOS_KAFKA_BROKERS)}: {text}"[:500]

    def _on_error(self, error: Any) -> None:
        """Store the connection error: the error of a message states only that it timed out."""
        if error.name() != "_ALL_BROKERS_DOWN" or not self.connection_error:
            self.connection_error = " ".join(error.str().split())


def _charge_first(results: list[DeliveryResult]) -> list[DeliveryResult]:
    """Change the UNAVAILABLE results but the first to NOT_TRIED: one job is charged an attempt."""
    charged = False
    for index, result in enumerate(results):
        if result.status is DeliveryStatus.UNAVAILABLE:
            if charged:
                results[index] = DeliveryResult(DeliveryStatus.NOT_TRIED, result.reason)
            charged = True
    return results


_open: dict[str, Producer] = process_cache()


def producer() -> Producer:
    """Return this process's producer; replace a broken one. Raises KafkaNotInstalled, or
    KafkaException for options that the client rejects."""
    key = repr((settings.PHOTOS_KAFKA_BROKERS, settings.PHOTOS_KAFKA_OPTIONS))
    current = _open.get(key)
    if current is None or current.broken:
        _open.clear()
        current = _open[key] = Producer()
    return current
