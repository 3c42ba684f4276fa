"""The inlet: photos that others announce on a topic are stored here.

    consume ──► store (one transaction) ──► dead letters ──► offsets
       ▲                                                       │
       └── database or cluster away: the partitions wait ◄─────┘

An offset is committed when what lies before it is in the database or in the topic of dead letters.
Killed in between, the messages come again: photos are known by their storage keys, so none is
stored twice; a dead letter may be there twice, and bears its place of origin.
"""

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError, InterfaceError, close_old_connections, connections, transaction

from domains.photos.kafka.client import library, options
from domains.photos.kafka.incoming import Malformed, take
from domains.photos.kafka.message import Message, as_headers
from domains.photos.kafka.producer import producer
from events import clock
from jobs.destination import Fate

log = structlog.get_logger(__name__)

BATCH = 100
TURN_SECONDS = 0.5
"""How long a turn waits for messages: how soon a stop is heard."""
LEAVE_SECONDS = 10.0
"""For taking leave of the cluster."""
LONGEST_WAIT = 30.0
KEPT_BYTES = 100_000
"""Bytes of a malformed message that go into its dead letter."""
KEPT_KEY = 1000

Place = tuple[int, int]
"""Partition and offset."""


class NotBuried(Exception):
    """Dead letters cannot be written now; the text says why."""


@dataclass(slots=True)
class Inlet:
    """Reads PHOTOS_KAFKA_INLET_TOPIC until `stop` is set."""

    stop: threading.Event = field(default_factory=threading.Event)
    stored: int = 0
    known: int = 0
    """Messages that had come before."""
    dead: int = 0
    consumer: Any = None
    pending: list[Any] = field(default_factory=list)
    """Messages whose offsets are not committed, in the order of their partitions."""
    buried: set[Place] = field(default_factory=set)
    """Those of them whose dead letters are written."""
    paused: bool = False
    failures: int = 0
    wait_until: float = 0.0

    def run(self) -> None:
        """Read until stopped; a consumer that broke is made anew. Raises Missing."""
        library()
        failures = 0
        while not self.stop.is_set():
            before = self.stored
            try:
                self._listen()
            except Exception as error:
                # Whatever the client does (a fatal error, options that it does not take).
                failures = 1 if self.stored > before else failures + 1
                wait = _backoff(failures)
                log.exception("photos.inlet.lost", error=_describe(error), retry_in=wait)
                self.stop.wait(wait)
        connections.close_all()

    def _listen(self) -> None:
        self.consumer = library().Consumer(
            options(
                {
                    "group.id": settings.PHOTOS_KAFKA_GROUP,
                    "enable.auto.commit": False,
                    "enable.auto.offset.store": False,
                    "auto.offset.reset": "earliest",
                    "queued.max.messages.kbytes": 16_384,
                    "on_commit": _committed,
                    "error_cb": _heard,
                }
            )
        )
        self.pending, self.buried, self.paused = [], set(), False
        try:
            topic = settings.PHOTOS_KAFKA_INLET_TOPIC
            self.consumer.subscribe(
                [topic], on_assign=_assigned, on_revoke=self._revoked, on_lost=self._revoked
            )
            log.info("photos.inlet.listening", topic=topic, group=settings.PHOTOS_KAFKA_GROUP)
            while not self.stop.is_set():
                self._turn()
        finally:
            self._leave()

    def _leave(self) -> None:
        """Leave the group. A cluster that is away would be waited for by the client for a minute;
        what is not committed by then comes again, and stores nothing."""
        leaving = threading.Thread(target=self.consumer.close, name="leave", daemon=True)
        leaving.start()
        leaving.join(LEAVE_SECONDS)
        if leaving.is_alive():
            log.warning("photos.inlet.left_at_once", waited=LEAVE_SECONDS)

    def _turn(self) -> None:
        """Ask for messages, which also keeps us in the group, and take what waits."""
        patience = self.wait_until - time.monotonic() if self.pending else TURN_SECONDS
        for message in self.consumer.consume(BATCH, min(max(patience, 0.0), TURN_SECONDS)):
            if error := message.error():
                _heard(error)
                if error.fatal():
                    raise RuntimeError(error.str())
            else:
                self.pending.append(message)
        if self.pending and time.monotonic() < self.wait_until:
            self._pause()
        elif self.pending:
            self._take()
        if not self.pending:
            self._resume()

    def _take(self) -> None:
        try:
            malformed = self._store()
            self._bury(malformed)
        except (DatabaseError, InterfaceError, NotBuried) as error:
            self._put_off(_describe(error))
        except Exception as error:
            # An error of ours is no reason to throw messages out: they wait until it is mended.
            log.exception("photos.inlet.error")
            self._put_off(_describe(error))
        else:
            self._commit()

    def _store(self) -> list[tuple[Any, str]]:
        """Store what waits, in one transaction; return the malformed ones, each with its reason."""
        malformed, stored = [], 0
        close_old_connections()
        with transaction.atomic():
            for message in self.pending:
                try:
                    stored += take(message.value())
                except Malformed as error:
                    malformed.append((message, str(error)))
        self.stored += stored
        self.known += len(self.pending) - stored - len(malformed)
        return malformed

    def _bury(self, malformed: list[tuple[Any, str]]) -> None:
        """Write the dead letters that are not written yet, and wait until the cluster has them."""
        left = [(one, why) for one, why in malformed if _place(one) not in self.buried]
        if not left:
            return
        verdicts = producer().send([_dead_letter(one, why) for one, why in left])
        for (one, why), verdict in zip(left, verdicts, strict=True):
            if verdict.fate is Fate.REFUSED:  # the topic takes less than KEPT_BYTES
                verdict = producer().send([_dead_letter(one, why, kept=0)])[0]
            if verdict.fate is not Fate.SENT:
                raise NotBuried(f"{settings.PHOTOS_KAFKA_DLQ_TOPIC}: {verdict.reason}")
            self.buried.add(_place(one))
            self.dead += 1
            log.warning("photos.inlet.malformed", place=_place(one), reason=why[:300])

    def _commit(self) -> None:
        """Commit the offsets behind all that was taken. It does not wait: what is lost with a
        commit comes again, and stores nothing."""
        ends: dict[int, int] = {}
        for message in self.pending:
            ends[message.partition()] = message.offset() + 1
        topic = settings.PHOTOS_KAFKA_INLET_TOPIC
        places = [library().TopicPartition(topic, number, end) for number, end in ends.items()]
        self.pending.clear()
        self.buried.clear()
        self.failures = 0
        self.consumer.commit(offsets=places, asynchronous=True)

    def _put_off(self, why: str) -> None:
        self.failures += 1
        wait = _backoff(self.failures)
        self.wait_until = time.monotonic() + wait
        self._pause()
        log.warning("photos.inlet.waits", error=why, messages=len(self.pending), retry_in=wait)

    def _pause(self) -> None:
        self.consumer.pause(self.consumer.assignment())
        self.paused = True

    def _resume(self) -> None:
        if self.paused:
            self.consumer.resume(self.consumer.assignment())
            self.paused = False

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        """Forget what waits of partitions that others read now: it comes to them again."""
        gone = {partition.partition for partition in partitions}
        self.pending = [one for one in self.pending if one.partition() not in gone]
        self.buried = {place for place in self.buried if place[0] not in gone}
        log.info("photos.inlet.revoked", partitions=sorted(gone))


def _dead_letter(message: Any, why: str, kept: int = KEPT_BYTES) -> Message:
    value, key = message.value(), message.key()
    headers = {
        "reason": why[:1000],
        "original-topic": message.topic(),
        "original-partition": str(message.partition()),
        "original-offset": str(message.offset()),
        "original-bytes": str(len(value or b"")),
        "refused-at": clock.now().isoformat(),
    }
    cut = value if value is None else value[:kept]
    return Message(
        settings.PHOTOS_KAFKA_DLQ_TOPIC, key and key[:KEPT_KEY], cut, as_headers(headers)
    )


def _place(message: Any) -> Place:
    return message.partition(), message.offset()


def _backoff(failures: int) -> float:
    return min(LONGEST_WAIT, 0.5 * 2.0 ** min(failures - 1, 10))


def _assigned(consumer: Any, partitions: list[Any]) -> None:
    log.info("photos.inlet.assigned", partitions=sorted(one.partition for one in partitions))


def _committed(error: Any, partitions: list[Any]) -> None:
    if error is not None:
        log.warning("photos.inlet.not_committed", error=error.str())


def _heard(error: Any) -> None:
    log.warning("photos.inlet.kafka", error=" ".join(error.str().split())[:300])


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
