"""A Kafka cluster for tests: librdkafka's built-in mock cluster, on free ports.

It speaks Kafka's protocol over TCP, so other clients and processes reach it. It is part of the
library in confluent-kafka's wheel, whose Python side has no words for it; hence ctypes.
"""

import ctypes
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import confluent_kafka as kafka

from tests.kit import PATIENCE

PRODUCER, PRODUCE = 0, 0
"""rd_kafka_type_t, and the number of the request in Kafka's protocol."""
BROKER = 1


@cache
def _library() -> ctypes.CDLL:
    package = Path(kafka.__file__).parent
    folders = (package.parent / "confluent_kafka.libs", package / ".dylibs")
    libraries = [file for folder in folders for file in folder.glob("librdkafka*")]
    assert libraries, "confluent-kafka was not installed from a wheel: its librdkafka is not found"
    library = ctypes.CDLL(str(libraries[0]))
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in (
        ("conf_new", pointer, []),
        ("conf_set", number, [pointer, text, text, text, ctypes.c_size_t]),
        ("new", pointer, [number, pointer, text, ctypes.c_size_t]),
        ("destroy", None, [pointer]),
        ("mock_cluster_new", pointer, [pointer, number]),
        ("mock_cluster_destroy", None, [pointer]),
        ("mock_cluster_bootstraps", text, [pointer]),
        ("mock_topic_create", number, [pointer, text, number, number]),
        ("mock_topic_set_error", None, [pointer, text, number]),
        ("mock_broker_set_down", number, [pointer, ctypes.c_int32]),
        ("mock_broker_set_up", number, [pointer, ctypes.c_int32]),
        ("mock_group_initial_rebalance_delay_ms", None, [pointer, ctypes.c_int32]),
        (
            "mock_push_request_errors_array",
            None,
            [pointer, ctypes.c_int16, ctypes.c_size_t, pointer],
        ),
    ):
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class Cluster:
    """One broker. Its messages survive while it is down."""

    def __init__(self) -> None:
        self.library = _library()
        error = ctypes.create_string_buffer(512)
        config = self.library.rd_kafka_conf_new()
        self.library.rd_kafka_conf_set(config, b"log_level", b"0", error, 512)
        self.client = self.library.rd_kafka_new(PRODUCER, config, error, 512)
        assert self.client, error.value
        self.cluster = self.library.rd_kafka_mock_cluster_new(self.client, 1)
        self.library.rd_kafka_mock_group_initial_rebalance_delay_ms(self.cluster, 0)
        self.brokers: str = self.library.rd_kafka_mock_cluster_bootstraps(self.cluster).decode()

    def close(self) -> None:
        self.library.rd_kafka_mock_cluster_destroy(self.cluster)
        self.library.rd_kafka_destroy(self.client)

    def topic(self, name: str, partitions: int = 4) -> None:
        assert not self.library.rd_kafka_mock_topic_create(
            self.cluster, name.encode(), partitions, 1
        )

    def refuse_topic(self, name: str, error: int) -> None:
        """Answer all that is asked about the topic with the error; 0 ends it."""
        self.library.rd_kafka_mock_topic_set_error(self.cluster, name.encode(), error)

    def answer_produce(self, *errors: int) -> None:
        """Answer the next requests to produce with these errors; 0 lets one through."""
        array = (ctypes.c_int * len(errors))(*errors)
        self.library.rd_kafka_mock_push_request_errors_array(
            self.cluster, PRODUCE, len(errors), array
        )

    def go_away(self) -> None:
        """Refuse connections and cut those there are."""
        self.library.rd_kafka_mock_broker_set_down(self.cluster, BROKER)

    def come_back(self) -> None:
        self.library.rd_kafka_mock_broker_set_up(self.cluster, BROKER)

    def send(self, topic: str, *messages: Any, partition: int = -1) -> None:
        """Put messages into a topic: bytes, None, or (key, value)."""
        producer = kafka.Producer(
            {"bootstrap.servers": self.brokers, "message.max.bytes": 10_000_000, "log_level": 0}
        )
        refused: list[Any] = []
        for message in messages:
            key, value = message if isinstance(message, tuple) else (None, message)
            producer.produce(
                topic, value, key, partition,
                on_delivery=lambda error, _: refused.append(error) if error else None,
            )  # fmt: skip
        assert producer.flush(PATIENCE) == 0
        assert not refused

    def messages(self, topic: str) -> list[kafka.Message]:
        """Return all that the topic holds, each partition's in its order."""
        with closing(self._consumer("reader")) as consumer:
            numbers = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
            ends = {n: self._end(consumer, topic, n) for n in numbers}
            wanted = sum(ends.values())
            consumer.assign([kafka.TopicPartition(topic, n, 0) for n in numbers])
            messages: list[kafka.Message] = []
            until = time.monotonic() + PATIENCE
            while len(messages) < wanted:
                assert time.monotonic() < until, f"{len(messages)} of {wanted} messages of {topic}"
                messages += consumer.consume(wanted, 0.2)
            assert not [message for message in messages if message.error()]
            return sorted(messages, key=lambda message: (message.partition(), message.offset()))

    def left(self, topic: str, group: str) -> int:
        """Return how many messages of the topic lie behind what the group committed."""
        with closing(self._consumer(group)) as consumer:
            numbers = consumer.list_topics(topic, PATIENCE).topics[topic].partitions
            places = consumer.committed([kafka.TopicPartition(topic, n) for n in numbers], PATIENCE)
            return sum(
                self._end(consumer, topic, place.partition) - max(place.offset, 0)
                for place in places
            )

    def _consumer(self, group: str) -> kafka.Consumer:
        return kafka.Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": group,
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )

    def _end(self, consumer: kafka.Consumer, topic: str, partition: int) -> int:
        offsets = consumer.get_watermark_offsets(kafka.TopicPartition(topic, partition), PATIENCE)
        assert offsets is not None
        return offsets[1]


@contextmanager
def running() -> Iterator[Cluster]:
    """Run a cluster for a while."""
    with closing(Cluster()) as cluster:
        yield cluster
