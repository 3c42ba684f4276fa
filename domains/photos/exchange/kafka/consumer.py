"""Store the photos that other systems send to a topic.

    consume ──► store (one transaction) ──► dead letters ──► commit offsets
       ▲                                                            │
       └──── database or cluster unavailable: partitions pause ◄────┘

An offset is committed once the messages before it are in the database or in the dead-letter topic.
Kafka may deliver messages again: the storage key identifies a photo, so no photo is stored twice. A
dead letter may be written twice; its headers name the original message.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connections, transaction

from tailrace.db import clock
from tailrace.domains.photos.exchange.kafka.client import client_options, library
from tailrace.domains.photos.exchange.kafka.incoming import MalformedMessage, store_message
from tailrace.domains.photos.exchange.kafka.message import Message, as_headers
from tailrace.domains.photos.exchange.kafka.producer import producer
from tailrace.jobs.destinations.delivery import DeliveryStatus

log = structlog.get_logger(__name__)

BATCH_SIZE = 100
POLL_SECONDS = 0.5
"""How long a poll waits for messages, and therefore how long stopping may take."""
CLOSE_SECONDS = 10.0
"""How long the consumer may take to leave its group."""
MAX_WAIT = 30.0
"""Maximum seconds between two attempts."""
DEAD_LETTER_BYTES, DEAD_LETTER_KEY_BYTES = 100_000, 1000
"""Maximum bytes of a malformed message and of its key that its dead letter contains."""

Position = tuple[int, int]
"""Partition and offset."""


class DeadLettersUnavailable(Exception):
    """Dead letters cannot be written now; the message states the reason."""


@dataclass(slots=True)
class PhotoConsumer:
    """Reads PHOTOS_KAFKA_INLET_TOPIC until `stop` is set."""

    stop: threading.Event = field(default_factory=threading.Event)
    stored: int = 0
    repeated: int = 0
    """Number of messages whose photo was stored before."""
    dead: int = 0
    client: Any = None
    pending: list[Any] = field(default_factory=list)
    """Messages whose offsets are not committed yet, in the order of their partitions."""
    dead_letters: set[Position] = field(default_factory=set)
    """Positions of pending messages whose dead letters are written."""
    paused: bool = False
    failures: int = 0
    wait_until: float = 0.0

    def run(self) -> None:
        """Read until `stop` is set; replace a client that fails. Raises KafkaNotInstalled."""
        library()
        failures = 0
        while not self.stop.is_set():
            before = self.stored
            try:
                self._consume()
            except Exception as error:
                # The client raises exceptions of any type, e.g. for options it does not accept.
                failures = 1 if self.stored > before else failures + 1
                wait = _backoff(failures)
                log.exception("photos.consumer.failed", error=_describe(error), retry_in=wait)
                self.stop.wait(wait)
        connections.close_all()

    def _consume(self) -> None:
        options = {
            "group.id": settings.PHOTOS_KAFKA_GROUP,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "earliest",
            "queued.max.messages.kbytes": 16_384,
            "on_commit": _on_commit,
            "error_cb": _log_error,
        }
        self.client = library().Consumer(client_options(options))
        self.pending, self.dead_letters, self.paused = [], set(), False
        try:
            topic = settings.PHOTOS_KAFKA_INLET_TOPIC
            self.client.subscribe(
                [topic], on_assign=_on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
            )
            log.info("photos.consumer.started", topic=topic, group=settings.PHOTOS_KAFKA_GROUP)
            while not self.stop.is_set():
                self._poll()
        finally:
            self._close()

    def _close(self) -> None:
        """Leave the group within CLOSE_SECONDS. Without a cluster, the client would wait longer."""
        thread = threading.Thread(target=self.client.close, name="close", daemon=True)
        thread.start()
        thread.join(CLOSE_SECONDS)
        if thread.is_alive():
            log.warning("photos.consumer.close_timed_out", waited=CLOSE_SECONDS)

    def _poll(self) -> None:
        """Fetch messages, which keeps the membership in the group, and process the pending ones
        unless a retry is scheduled."""
        wait = self.wait_until - time.monotonic() if self.pending else POLL_SECONDS
        for message in self.client.consume(BATCH_SIZE, min(max(wait, 0.0), POLL_SECONDS)):
            if error := message.error():
                _log_error(error)
                if error.fatal():
                    raise RuntimeError(error.str())
            else:
                self.pending.append(message)
        if self.pending and time.monotonic() < self.wait_until:
            self._pause()
        elif self.pending:
            self._process()
        if not self.pending:
            self._resume()

    def _process(self) -> None:
        try:
            malformed = self._store()
            self._write_dead_letters(malformed)
        except Exception as error:
            # Even a bug here must not lose messages: they stay pending until it is fixed.
            if not isinstance(error, DatabaseError | InterfaceError | DeadLettersUnavailable):
                log.exception("photos.consumer.error")
            self._retry_later(_describe(error))
        else:
            self._commit()

    def _store(self) -> list[tuple[Any, str]]:
        """Store the photos of the pending messages in one transaction; return the malformed
        messages with their reasons."""
        malformed, stored = [], 0
        close_old_connections()
        with transaction.atomic():
            for message in self.pending:
                try:
                    stored += store_message(message.value())
                except MalformedMessage as error:
                    malformed.append((message, str(error)))
        self.stored += stored
        self.repeated += len(self.pending) - stored - len(malformed)
        return malformed

    def _write_dead_letters(self, malformed: list[tuple[Any, str]]) -> None:
        """Write the missing dead letters, or raise DeadLettersUnavailable."""
        todo = [
            (message, reason)
            for message, reason in malformed
            if _position(message) not in self.dead_letters
        ]
        if not todo:
            return
        results = producer().send([_dead_letter(message, reason) for message, reason in todo])
        for (message, reason), result in zip(todo, results, strict=True):
            if result.status is DeliveryStatus.REJECTED:  # too large for the topic
                result = producer().send([_dead_letter(message, reason, max_bytes=0)])[0]
            if result.status is not DeliveryStatus.SENT:
                raise DeadLettersUnavailable(f"{settings.PHOTOS_KAFKA_DLQ_TOPIC}: {result.reason}")
            position = _position(message)
            self.dead_letters.add(position)
            self.dead += 1
            log.warning("photos.consumer.malformed", position=position, reason=reason[:300])

    def _commit(self) -> None:
        """Commit the offsets of the pending messages without waiting."""
        ends = {message.partition(): message.offset() + 1 for message in self.pending}
        topic = settings.PHOTOS_KAFKA_INLET_TOPIC
        offsets = [library().TopicPartition(topic, number, end) for number, end in ends.items()]
        self.pending.clear()
        self.dead_letters.clear()
        self.failures = 0
        self.client.commit(offsets=offsets, asynchronous=True)

    def _retry_later(self, reason: str) -> None:
        self.failures += 1
        wait = _backoff(self.failures)
        self.wait_until = time.monotonic() + wait
        self._pause()
        count = len(self.pending)
        log.warning("photos.consumer.retry_scheduled", error=reason, messages=count, retry_in=wait)

    def _pause(self) -> None:
        self.client.pause(self.client.assignment())
        self.paused = True

    def _resume(self) -> None:
        if self.paused:
            self.client.resume(self.client.assignment())
            self.paused = False

    def _on_revoke(self, client: Any, partitions: list[Any]) -> None:
        """Drop the pending messages of partitions that are now assigned to another consumer."""
        revoked = {partition.partition for partition in partitions}
        self.pending = [message for message in self.pending if message.partition() not in revoked]
        self.dead_letters = {each for each in self.dead_letters if each[0] not in revoked}
        log.info("photos.consumer.revoked", partitions=sorted(revoked))


def _dead_letter(message: Any, reason: str, max_bytes: int = DEAD_LETTER_BYTES) -> Message:
    value, key = message.value(), message.key()
    headers = {
        "reason": reason[:1000],
        "original-topic": message.topic(),
        "original-partition": str(message.partition()),
        "original-offset": str(message.offset()),
        "original-bytes": str(len(value or b"")),
        "refused-at": clock.now().isoformat(),
    }
    return Message(
        settings.PHOTOS_KAFKA_DLQ_TOPIC,
        key and key[:DEAD_LETTER_KEY_BYTES],
        value if value is None else value[:max_bytes],
        as_headers(headers),
    )


def _position(message: Any) -> Position:
    return message.partition(), message.offset()


def _backoff(failures: int) -> float:
    return min(MAX_WAIT, 0.5 * 2.0 ** min(failures - 1, 10))


def _on_assign(client: Any, partitions: list[Any]) -> None:
    numbers = sorted(partition.partition for partition in partitions)
    log.info("photos.consumer.assigned", partitions=numbers)


def _on_commit(error: Any, partitions: list[Any]) -> None:
    if error is not None:
        log.warning("photos.consumer.commit_failed", error=error.str())


def _log_error(error: Any) -> None:
    log.warning("photos.consumer.kafka_error", error=" ".join(error.str().split())[:300])


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
