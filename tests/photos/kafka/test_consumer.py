"""The consumer, with the mock cluster of librdkafka."""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.db import connection

from tailrace.domains.photos.exchange.kafka import producer as producers
from tailrace.domains.photos.exchange.kafka.consumer import PhotoConsumer
from tailrace.domains.photos.exchange.kafka.incoming import MalformedMessage, store_message
from tailrace.domains.photos.models import Photo
from tailrace.events.models import Event
from tests import forks, kept_sessions
from tests.kit import PATIENCE, ROOT, wait_until
from tests.photos.kafka.kit import AT, DLQ, INLET, UPLOADS, headers, incoming, photo
from tests.servers import kafka

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]

GROUP = "tailrace-photos"
FORBIDDEN, TOO_LARGE = 29, 10
OPTIONS = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "300"}
"""Of the group: a member learns by its heartbeat that another came or went."""
CLOSE_SOON = """
import django
django.setup()
from tailrace.events.management.subcommands import call_subcommand
from tailrace.domains.photos.exchange.kafka import consumer
consumer.CLOSE_SECONDS = 1
call_subcommand("photos_inlet")
"""


@pytest.fixture
def cluster(settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[kafka.Cluster]:
    monkeypatch.setattr(producers, "DELIVERY_SECONDS", 3)
    with kafka.running() as running:
        settings.PHOTOS_KAFKA_BROKERS = running.brokers.split(",")
        settings.PHOTOS_KAFKA_INLET_TOPIC = INLET
        settings.PHOTOS_KAFKA_OPTIONS = OPTIONS
        running.topic(INLET, 2)
        running.topic(DLQ, 1)
        yield running


@pytest.fixture
def listen(cluster: kafka.Cluster) -> Iterator[Callable[[], PhotoConsumer]]:
    """Start a consumer in a thread; stop all at the end."""
    started: list[tuple[PhotoConsumer, threading.Thread]] = []

    def start() -> PhotoConsumer:
        consumer = PhotoConsumer()
        thread = threading.Thread(target=consumer.run, daemon=True)
        thread.start()
        started.append((consumer, thread))
        return consumer

    yield start
    for consumer, thread in started:
        consumer.stop.set()
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the consumer does not stop"


class Process:
    """`manage.py photos_inlet` with its output in a file."""

    def __init__(self, env: dict[str, str], log: Path, *words: str) -> None:
        self.log = log
        with log.open("ab") as file:
            self.process = forks.Fork(
                words or ("manage.py", "photos_inlet"),
                cwd=ROOT, env=env, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def as_variables(options: Mapping[str, str]) -> dict[str, str]:
    return {
        f"PHOTOS_KAFKA_OPTION_{name.replace('.', '_').upper()}": value
        for name, value in options.items()
    }


@pytest.fixture
def process(
    cluster: kafka.Cluster, process_env: dict[str, str], tmp_path: Path
) -> Iterator[Callable[..., Process]]:
    env = process_env | {
        "PHOTOS_KAFKA_BROKERS": cluster.brokers,
        "PHOTOS_KAFKA_INLET_TOPIC": INLET,
        **as_variables(OPTIONS),
    }
    started: list[Process] = []

    def start(*words: str, **options: str) -> Process:
        log = tmp_path / f"consumer{len(started)}.log"
        started.append(Process(env | as_variables(options), log, *words))
        return started[-1]

    yield start
    for item in started:
        if item.process.poll() is None:
            item.process.kill()
            item.process.wait(PATIENCE)


@contextmanager
def without_photos() -> Iterator[None]:
    """Make photos impossible to store."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tailrace_photos_photo RENAME TO photos_away")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE photos_away RENAME TO tailrace_photos_photo")


def wait_for_photos(count: int) -> None:
    wait_until(lambda: Photo.objects.count() >= count, what=f"{count} photos")


def all_committed(cluster: kafka.Cluster) -> None:
    wait_until(lambda: not cluster.left(INLET, GROUP), what="offsets behind all messages")


def test_a_message_becomes_a_photo_and_its_event(cluster: kafka.Cluster, listen: Callable) -> None:
    get_user_model().objects.create_user("alice")
    cluster.send(INLET, incoming(1, user="alice", caption="Neckar", flash=True))
    listen()
    wait_for_photos(1)
    stored = Photo.objects.get()
    assert (stored.storage_key, stored.lat, stored.lon, stored.taken_at, stored.caption) == (
        "in/1.jpg", 50.001, 8.5, AT, "Neckar",
    )  # fmt: skip
    assert stored.user.username == "alice"
    assert Event.objects.get(type="photos.uploaded").actor == "alice"
    all_committed(cluster)


def test_a_repeated_message_is_stored_once(cluster: kafka.Cluster, listen: Callable) -> None:
    cluster.send(INLET, *[incoming(number) for number in range(5)])
    cluster.send(INLET, *[incoming(number) for number in range(6)])
    consumer = listen()
    wait_for_photos(6)
    all_committed(cluster)
    assert (consumer.stored, consumer.repeated, consumer.dead) == (6, 5, 0)
    assert Photo.objects.count() == Event.objects.count() == 6


def test_another_installation_can_read_our_messages(
    settings, cluster: kafka.Cluster, run_jobs: Callable, listen: Callable
) -> None:
    cluster.topic(UPLOADS)
    photo(3)
    run_jobs("photos.kafka_uploads")
    (message,) = cluster.messages(UPLOADS)
    Photo.objects.all().delete()
    cluster.send(INLET, (message.key(), message.value()))
    listen()
    wait_for_photos(1)
    assert Photo.objects.get().storage_key == "p/3.jpg"


MALFORMED = {
    "not JSON": (b"{cut", "Invalid JSON"),
    "bad UTF-8": (b'{"storage_key": "\xff\xfe"}', "Invalid JSON"),
    "half a surrogate": (incoming(9)[1].replace(b"in/9", b"\\ud800"), "Invalid JSON"),
    "no value": (None, "no value"),
    "nothing": (b"", "Invalid JSON"),
    "a list": (b"[1, 2]", "should be an object"),
    "no place": (b'{"storage_key": "x", "taken_at": "2026-07-01T12:00:00Z"}', "payload.lat"),
    "NaN": (incoming(9)[1].replace(b"8.5", b"NaN"), "lon"),
    "infinite": (incoming(9)[1].replace(b"8.5", b"1e999"), "lon"),
    "off the earth": (incoming(9, lat=91)[1], "lat: 91.0"),
    "a number as text": (incoming(9, lat="50")[1], "payload.lat"),
    "no time zone": (incoming(9, taken_at="2026-07-01T12:00:00")[1], "payload.taken_at"),
    "1970": (incoming(9, taken_at="1970-01-01T00:00:00Z")[1], "taken_at"),
    "NUL": (incoming(9, storage_key="a\0b")[1], "NUL"),
    "NUL in the user": (incoming(9, user="a\0b")[1], "NUL"),
    "500 digits": (incoming(9)[1].replace(b"8.5", b"9" * 500), "lon"),
    "the year 1": (incoming(9, taken_at="0001-01-01T00:00:00+14:00")[1], "taken_at"),
    "the year 9999": (incoming(9, taken_at="9999-12-31T23:59:59-14:00")[1], "taken_at"),
    "an hour 25": (incoming(9, taken_at="2026-07-01T25:00:00Z")[1], "payload.taken_at"),
    "a stranger": (incoming(9, user="nobody-at-all")[1], "there is no user 'nobody-at-all'"),
    "deep": (b"[" * 60_000, "Invalid JSON"),
    "5 MB": (b"x" * 5_000_000, "5000000 bytes"),
}


def test_malformed_messages_become_dead_letters(cluster: kafka.Cluster, listen: Callable) -> None:
    for value, _reason in MALFORMED.values():
        cluster.send(INLET, (b"k", value), partition=0)
    cluster.send(INLET, incoming(1), partition=0)
    consumer = listen()
    wait_for_photos(1)
    all_committed(cluster)
    letters = cluster.messages(DLQ)
    assert len(letters) == len(MALFORMED) == consumer.dead
    for offset, (letter, (value, reason)) in enumerate(
        zip(letters, MALFORMED.values(), strict=True)
    ):
        names = headers(letter)
        assert reason in names["reason"]
        assert names["original-topic"] == INLET
        assert (names["original-partition"], names["original-offset"]) == ("0", str(offset))
        assert names["original-bytes"] == str(len(value or b""))
        assert letter.value() == (value[:100_000] if value is not None else None)
        assert letter.key() == b"k"
    assert Photo.objects.count() == Event.objects.count() == 1


def test_another_photos_storage_key_is_malformed() -> None:
    assert store_message(incoming(1)[1])
    assert not store_message(incoming(1)[1])
    with pytest.raises(MalformedMessage, match="belongs to another photo"):
        store_message(incoming(1, lat=10)[1])


def test_partitions_pause_while_the_database_is_away(
    cluster: kafka.Cluster, listen: Callable, caplog: pytest.LogCaptureFixture
) -> None:
    with without_photos():
        cluster.send(INLET, *[incoming(number) for number in range(20)], b"{cut")
        consumer = listen()
        wait_until(lambda: consumer.failures >= 2, what="two tries")
        cluster.send(INLET, *[incoming(number) for number in range(20, 30)])
        assert cluster.left(INLET, GROUP) == 31
        assert not cluster.messages(DLQ)
    wait_for_photos(30)
    all_committed(cluster)
    assert len(cluster.messages(DLQ)) == 1
    assert "photos.consumer.retry_scheduled" in caplog.text


def test_a_lost_database_connection_is_replaced(cluster: kafka.Cluster, listen: Callable) -> None:
    cluster.send(INLET, incoming(1))
    listen()
    wait_for_photos(1)
    kept_sessions.end()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchone()[0]
    cluster.send(INLET, incoming(2))
    wait_for_photos(2)
    all_committed(cluster)


@pytest.mark.slow
def test_messages_wait_until_dead_letters_can_be_written(
    cluster: kafka.Cluster, listen: Callable
) -> None:
    cluster.refuse_topic(DLQ, FORBIDDEN)
    cluster.send(INLET, b"{cut", incoming(1), partition=0)
    consumer = listen()
    wait_until(lambda: consumer.failures >= 2, what="two tries")
    assert cluster.left(INLET, GROUP) == 2
    cluster.refuse_topic(DLQ, 0)
    producers._open.clear()  # the client asks about a topic again after a while
    all_committed(cluster)
    assert [letter.value() for letter in cluster.messages(DLQ)] == [b"{cut"]
    assert Photo.objects.count() == 1


def test_a_too_large_dead_letter_is_sent_without_value(
    cluster: kafka.Cluster, listen: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producers, "MAX_MESSAGE_BYTES", 2000)
    cluster.send(INLET, b"{cut" * 5000)
    listen()
    all_committed(cluster)
    (letter,) = cluster.messages(DLQ)
    assert letter.value() == b""
    assert headers(letter)["original-bytes"] == "20000"


@pytest.mark.slow
def test_reading_continues_after_a_cluster_outage(cluster: kafka.Cluster, listen: Callable) -> None:
    cluster.send(INLET, *[incoming(number) for number in range(5)])
    listen()
    wait_for_photos(5)
    cluster.go_away()
    cluster.come_back()
    cluster.send(INLET, *[incoming(number) for number in range(5, 10)])
    wait_for_photos(10)
    all_committed(cluster)


@pytest.mark.long
def test_a_kill_loses_nothing_and_stores_nothing_twice(
    cluster: kafka.Cluster, process: Callable[..., Process]
) -> None:
    good, bad = 1200, 24
    messages = []
    for number in range(good):
        messages.append(incoming(number))
        if number % (good // bad) == 0:
            messages.append((None, b"{cut"))
    cluster.send(INLET, *messages)
    for mark in (1, good // 4):
        consumer = process(**{"session.timeout.ms": "2000"})
        wait_until(lambda: Photo.objects.count() >= mark, what=f"{mark} photos")  # noqa: B023
        consumer.end(signal.SIGKILL)
    assert Photo.objects.count() < good, "it was killed too late to prove anything"
    last = process()
    wait_for_photos(good)
    all_committed(cluster)
    assert last.end() == 0
    assert Photo.objects.count() == Event.objects.filter(type="photos.uploaded").count() == good
    assert Photo.objects.values("storage_key").distinct().count() == good
    letters = {(headers(letter)["original-partition"], headers(letter)["original-offset"])
               for letter in cluster.messages(DLQ)}  # fmt: skip
    assert len(letters) == bad


@pytest.mark.slow
def test_it_stops_on_sigterm_with_all_offsets_committed(
    cluster: kafka.Cluster, process: Callable[[], Process]
) -> None:
    cluster.send(INLET, *[incoming(number) for number in range(50)], b"{cut")
    consumer = process()
    wait_for_photos(50)
    wait_until(lambda: len(cluster.messages(DLQ)) == 1)
    assert consumer.end() == 0
    assert "photos_inlet: 50 photos stored, 0 already stored, 1 messages sent to photo-dlq" in (
        consumer.output
    )
    assert cluster.left(INLET, GROUP) == 0


@pytest.mark.slow
def test_it_stops_on_sigterm_during_a_cluster_outage(
    cluster: kafka.Cluster, process: Callable[..., Process]
) -> None:
    cluster.send(INLET, *[incoming(number) for number in range(50)])
    consumer = process("-c", CLOSE_SOON)
    wait_for_photos(50)
    cluster.go_away()
    assert consumer.end() == 0


@pytest.mark.long
@pytest.mark.slow
def test_a_second_consumer_shares_and_takes_over(
    cluster: kafka.Cluster, process: Callable[[], Process]
) -> None:
    first = process()
    wait_until(lambda: "assigned" in first.output, 30, "the first listens")
    second = process()
    wait_until(lambda: "assigned" in second.output, 40, "the second listens")
    for partition in (0, 1):
        numbers = range(partition, 40, 2)
        cluster.send(INLET, *[incoming(number) for number in numbers], partition=partition)
    wait_for_photos(40)
    assert first.end() == 0
    cluster.send(INLET, *[incoming(number) for number in range(40, 60)])
    wait_for_photos(60)
    all_committed(cluster)
    assert second.end() == 0
    assert Photo.objects.count() == Event.objects.count() == 60
    for process in (first, second):
        assert "photos_inlet: 0 photos" not in process.output, "both had a share"


@pytest.mark.parametrize(
    "missing",
    [
        "PHOTOS_KAFKA_INLET_TOPIC",
        pytest.param("PHOTOS_KAFKA_BROKERS", marks=pytest.mark.long),
    ],
)
def test_the_command_names_a_missing_setting(process_env: dict[str, str], missing: str) -> None:
    env = process_env | {"PHOTOS_KAFKA_BROKERS": "127.0.0.1:9", "PHOTOS_KAFKA_INLET_TOPIC": INLET}
    done = forks.run(
        ["manage.py", "photos_inlet"],
        cwd=ROOT, env=env | {missing: ""}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode
    assert missing in done.stderr
    assert "Traceback" not in done.stderr
