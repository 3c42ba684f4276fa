"""This process's producer, and what became of each message."""

import os
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.conf import settings

from domains.photos.kafka.client import library, options
from domains.photos.kafka.message import Message
from jobs.destination import UNTRIED, Fate, Verdict

ANSWER_SECONDS = 10
"""How long a message may take until the cluster has it, all tries of the client together."""
TOPIC_SECONDS = 3
"""How long a topic that nobody knows may take to appear."""
LARGEST = 1_000_000
"""Bytes of a message; also what most brokers take."""

# By the names that librdkafka gives its errors.
REFUSED = (
    "MSG_SIZE_TOO_LARGE RECORD_LIST_TOO_LARGE INVALID_RECORD INVALID_TIMESTAMP _BAD_MSG".split()
)
"""The cluster will never take this message."""
NO_TOPIC = "UNKNOWN_TOPIC_OR_PART _UNKNOWN_TOPIC _UNKNOWN_PARTITION".split()
DOWN = [
    *NO_TOPIC,
    *"_MSG_TIMED_OUT _TIMED_OUT _TRANSPORT _ALL_BROKERS_DOWN _RESOLVE _SSL _FATAL".split(),
    *"_PURGE_QUEUE _PURGE_INFLIGHT".split(),
    *"_AUTHENTICATION SASL_AUTHENTICATION_FAILED TOPIC_AUTHORIZATION_FAILED".split(),
    *"CLUSTER_AUTHORIZATION_FAILED TOPIC_EXCEPTION BROKER_NOT_AVAILABLE".split(),
    *"LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION NOT_ENOUGH_REPLICAS".split(),
    *"NOT_ENOUGH_REPLICAS_AFTER_APPEND REQUEST_TIMED_OUT KAFKA_STORAGE_ERROR".split(),
]
"""The topic cannot be written to, by this message or any other."""


class Producer:
    """Sends messages to the cluster of the settings. It connects when it first sends.

    What the client sends again by itself is written once (idempotence), and a message counts as
    sent when all replicas in sync have it. One whose fate stayed unknown may be there already when
    its job sends it again: readers know it by its `event-id`.
    """

    def __init__(self) -> None:
        """Make the client. Raises Missing, or KafkaException for options that it does not take."""
        self.kafka = library()
        self.lock = threading.Lock()
        self.broken = False
        """It takes no message any more: another producer has to be made."""
        self.trouble = ""
        """What the client last said of its connections."""
        self.client: Any = self.kafka.Producer(
            options(
                {
                    "enable.idempotence": True,
                    "acks": "all",
                    "linger.ms": 5,
                    "message.timeout.ms": ANSWER_SECONDS * 1000,
                    "topic.metadata.propagation.max.ms": TOPIC_SECONDS * 1000,
                    "message.max.bytes": LARGEST,
                    "error_cb": self._hear,
                }
            )
        )

    def send(self, messages: Sequence[Message]) -> list[Verdict]:
        """Send the messages and wait for the cluster's word on each; return their fates."""
        with self.lock:
            verdicts = self._send(messages)
            if len(messages) > 1:
                # A batch on the wire is refused as a whole: which of it is too large?
                for place, verdict in enumerate(verdicts):
                    if verdict.fate is Fate.REFUSED and not self.broken:
                        verdicts[place] = self._send([messages[place]])[0]
        return _blame_the_first(verdicts)

    def _send(self, messages: Sequence[Message]) -> list[Verdict]:
        self.trouble = ""
        verdicts: list[Verdict | None] = [None] * len(messages)

        def told(place: int, error: Any, report: Any) -> None:
            verdicts[place] = self._judge(error) if error else _sent(report)

        for place, message in enumerate(messages):
            try:
                self.client.produce(
                    message.topic, message.value, message.key,
                    headers=message.headers, on_delivery=partial(told, place),
                )  # fmt: skip
            except self.kafka.KafkaException as error:
                verdicts[place] = self._judge(error.args[0])
            except BufferError:
                verdicts[place] = UNTRIED
        self._flush(ANSWER_SECONDS + 5)
        if None in verdicts or self.broken:
            self._give_up()
        silent = Verdict(Fate.DOWN, self._say("the client did not say what became of it"))
        return [verdict or silent for verdict in verdicts]

    def _flush(self, seconds: float) -> None:
        try:
            self.client.flush(seconds)
        except self.kafka.KafkaException as error:
            self.broken = True
            self.trouble = error.args[0].str()

    def _give_up(self) -> None:
        """Take back what waits in the client: its job will send it again, and it must not arrive
        behind what that job's lane sends after it."""
        self.broken = True
        self.client.purge()
        self._flush(1)

    def _judge(self, error: Any) -> Verdict:
        if error.fatal() or error.name() == "_FATAL":
            self.broken = True
        said = error.str()
        if error.name() in NO_TOPIC:
            said += " (the topic has to exist)"
        elif self.trouble:
            said += f" ({self.trouble})"
        return Verdict(self._fate(error), self._say(said))

    def _fate(self, error: Any) -> Fate:
        if error.name() in REFUSED:
            return Fate.REFUSED
        return Fate.DOWN if error.name() in DOWN or error.fatal() else Fate.FAILED

    def _say(self, what: str) -> str:
        return f"{','.join(settings.PHOTOS_KAFKA_BROKERS)}: {what}"[:500]

    def _hear(self, error: Any) -> None:
        """Keep what the client says of a connection: a message only says that it came too late."""
        if error.name() != "_ALL_BROKERS_DOWN" or not self.trouble:
            self.trouble = " ".join(error.str().split())


def _sent(report: Any) -> Verdict:
    return Verdict(Fate.SENT, result={"partition": report.partition(), "offset": report.offset()})


def _blame_the_first(verdicts: list[Verdict]) -> list[Verdict]:
    """Let the first bear that the topic cannot be written to; the others were held up by that."""
    blamed = False
    for place, verdict in enumerate(verdicts):
        if verdict.fate is Fate.DOWN:
            if blamed:
                verdicts[place] = Verdict(Fate.UNTRIED, verdict.reason)
            blamed = True
    return verdicts


_open: dict[str, Producer] = {}
_inherited: list[Producer] = []
"""Producers of the parent process. They are kept: their threads are not here to be joined."""


def _forget() -> None:
    _inherited.extend(_open.values())
    _open.clear()


os.register_at_fork(after_in_child=_forget)


def producer() -> Producer:
    """Return this process's producer for the cluster of the settings, made anew if it broke.

    Raises Missing, or KafkaException for options that the client does not take.
    """
    key = repr((settings.PHOTOS_KAFKA_BROKERS, settings.PHOTOS_KAFKA_OPTIONS))
    found = _open.get(key)
    if found is None or found.broken:
        _open.clear()
        found = _open[key] = Producer()
    return found
