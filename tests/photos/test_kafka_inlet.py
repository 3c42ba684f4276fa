"""The inlet, on the cluster that librdkafka has built in."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.db import connection

from domains.photos.kafka import producer as producers
from domains.photos.kafka.incoming import Malformed, take
from domains.photos.kafka.inlet import Inlet
from domains.photos.models import Photo
from events.models import Event
from tests.kit import ROOT, wait_until
from tests.photos.kafka_kit import AT, DLQ, INLET, UPLOADS, headers, incoming, photo
from tests.servers import kafka

pytestmark = pytest.mark.django_db(transaction=True)

GROUP = "tailrace-photos"
FORBIDDEN, TOO_LARGE = 29, 10


@pytest.fixture
def cluster(settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[kafka.Cluster]:
    monkeypatch.setattr(producers, "ANSWER_SECONDS", 3)
    with kafka.running() as running:
        settings.PHOTOS_KAFKA_BROKERS = running.brokers.split(",")
        settings.PHOTOS_KAFKA_INLET_TOPIC = INLET
        settings.PHOTOS_KAFKA_OPTIONS = {"session.timeout.ms": "6000"}
        running.topic(INLET, 2)
        running.topic(DLQ, 1)
        yield running


@pytest.fixture
def listen(cluster: kafka.Cluster) -> Iterator[Callable[[], Inlet]]:
    """Start an inlet in a thread; all are ended at the end."""
    started: list[tuple[Inlet, threading.Thread]] = []

    def start() -> Inlet:
        inlet = Inlet()
        thread = threading.Thread(target=inlet.run, daemon=True)
        thread.start()
        started.append((inlet, thread))
        return inlet

    yield start
    for inlet, thread in started:
        inlet.stop.set()
        thread.join(20)
        assert not thread.is_alive(), "the inlet does not stop"


class Process:
    """`manage.py photos_inlet` with its output in a file."""

    def __init__(self, env: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "photos_inlet"],
                cwd=ROOT, env=env, stdout=file, stderr=subprocess.STDOUT,
            )  # fmt: skip

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


@pytest.fixture
def process(
    cluster: kafka.Cluster, process_env: dict[str, str], tmp_path: Path
) -> Iterator[Callable[[], Process]]:
    env = process_env | {
        "PHOTOS_KAFKA_BROKERS": cluster.brokers,
        "PHOTOS_KAFKA_INLET_TOPIC": INLET,
        "PHOTOS_KAFKA_OPTION_SESSION_TIMEOUT_MS": "6000",
    }
    started: list[Process] = []

    def start() -> Process:
        started.append(Process(env, tmp_path / f"inlet{len(started)}.log"))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait(10)


@contextmanager
def without_photos() -> Iterator[None]:
    """As if the database could not be written to."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE photos_photo RENAME TO photos_away")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE photos_away RENAME TO photos_photo")


def stored(count: int, seconds: float = 30) -> None:
    wait_until(lambda: Photo.objects.count() >= count, seconds, f"{count} photos")


def all_committed(cluster: kafka.Cluster) -> None:
    wait_until(lambda: not cluster.left(INLET, GROUP), what="offsets behind all messages")


def test_a_message_becomes_a_photo_and_its_event(cluster: kafka.Cluster, listen: Callable) -> None:
    get_user_model().objects.create_user("alice")
    cluster.send(INLET, incoming(1, user="alice", caption="Neckar", flash=True))
    listen()
    stored(1)
    found = Photo.objects.get()
    assert (found.storage_key, found.lat, found.lon, found.taken_at, found.caption) == (
        "in/1.jpg", 50.001, 8.5, AT, "Neckar",
    )  # fmt: skip
    assert found.user.username == "alice"
    assert Event.objects.get(type="photos.uploaded").actor == "alice"
    all_committed(cluster)


def test_what_comes_again_is_stored_once(cluster: kafka.Cluster, listen: Callable) -> None:
    cluster.send(INLET, *[incoming(number) for number in range(5)])
    cluster.send(INLET, *[incoming(number) for number in range(6)])
    inlet = listen()
    stored(6)
    all_committed(cluster)
    assert (inlet.stored, inlet.known, inlet.dead) == (6, 5, 0)
    assert Photo.objects.count() == Event.objects.count() == 6


def test_a_message_of_our_own_outlet_can_be_read_by_another_installation(
    settings, cluster: kafka.Cluster, run_jobs: Callable, listen: Callable
) -> None:
    cluster.topic(UPLOADS)
    photo(3)
    run_jobs("photos.kafka_uploads")
    (told,) = cluster.messages(UPLOADS)
    Photo.objects.all().delete()
    cluster.send(INLET, (told.key(), told.value()))
    listen()
    stored(1)
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
    "a stranger": (incoming(9, user="nobody-at-all")[1], "nobody is called 'nobody-at-all'"),
    "deep": (b"[" * 60_000, "Invalid JSON"),
    "5 MB": (b"x" * 5_000_000, "5000000 bytes"),
}


def test_malformed_messages_are_put_aside_each_with_its_reason_and_the_partition_goes_on(
    cluster: kafka.Cluster, listen: Callable
) -> None:
    for value, _reason in MALFORMED.values():
        cluster.send(INLET, (b"k", value), partition=0)
    cluster.send(INLET, incoming(1), partition=0)
    inlet = listen()
    stored(1)
    all_committed(cluster)
    letters = cluster.messages(DLQ)
    assert len(letters) == len(MALFORMED) == inlet.dead
    for offset, (letter, (value, reason)) in enumerate(
        zip(letters, MALFORMED.values(), strict=True)
    ):
        said = headers(letter)
        assert reason in said["reason"]
        assert said["original-topic"] == INLET
        assert (said["original-partition"], said["original-offset"]) == ("0", str(offset))
        assert said["original-bytes"] == str(len(value or b""))
        assert letter.value() == (value[:100_000] if value is not None else None)
        assert letter.key() == b"k"
    assert Photo.objects.count() == Event.objects.count() == 1


def test_a_storage_key_of_another_photo_is_no_repetition() -> None:
    assert take(incoming(1)[1])
    assert not take(incoming(1)[1])
    with pytest.raises(Malformed, match="taken by another photo"):
        take(incoming(1, lat=10)[1])


def test_while_the_database_is_away_the_partitions_wait_and_nothing_is_put_aside(
    cluster: kafka.Cluster, listen: Callable, caplog: pytest.LogCaptureFixture
) -> None:
    with without_photos():
        cluster.send(INLET, *[incoming(number) for number in range(20)], b"{cut")
        inlet = listen()
        wait_until(lambda: inlet.failures >= 2, what="two tries")
        cluster.send(INLET, *[incoming(number) for number in range(20, 30)])
        assert cluster.left(INLET, GROUP) == 31
        assert not cluster.messages(DLQ)
    stored(30)
    all_committed(cluster)
    assert len(cluster.messages(DLQ)) == 1
    assert "photos.inlet.waits" in caplog.text


def test_a_connection_to_the_database_that_was_cut_costs_a_wait_at_most(
    cluster: kafka.Cluster, listen: Callable
) -> None:
    cluster.send(INLET, incoming(1))
    listen()
    stored(1)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert cursor.fetchone()[0]
    cluster.send(INLET, incoming(2))
    stored(2)
    all_committed(cluster)


@pytest.mark.slow
def test_while_dead_letters_cannot_be_written_their_messages_wait(
    cluster: kafka.Cluster, listen: Callable
) -> None:
    cluster.refuse_topic(DLQ, FORBIDDEN)
    cluster.send(INLET, b"{cut", incoming(1), partition=0)
    inlet = listen()
    wait_until(lambda: inlet.failures >= 2, what="two tries")
    assert cluster.left(INLET, GROUP) == 2
    cluster.refuse_topic(DLQ, 0)
    producers._open.clear()  # the client asks about a topic again after a while
    all_committed(cluster)
    assert [letter.value() for letter in cluster.messages(DLQ)] == [b"{cut"]
    assert Photo.objects.count() == 1


def test_a_dead_letter_that_is_too_large_goes_without_its_value(
    cluster: kafka.Cluster, listen: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producers, "LARGEST", 2000)
    cluster.send(INLET, b"{cut" * 5000)
    listen()
    all_committed(cluster)
    (letter,) = cluster.messages(DLQ)
    assert letter.value() == b""
    assert headers(letter)["original-bytes"] == "20000"


@pytest.mark.slow
def test_the_cluster_goes_away_and_comes_back(cluster: kafka.Cluster, listen: Callable) -> None:
    cluster.send(INLET, *[incoming(number) for number in range(5)])
    listen()
    stored(5)
    cluster.go_away()
    cluster.come_back()
    cluster.send(INLET, *[incoming(number) for number in range(5, 10)])
    stored(10)
    all_committed(cluster)


@pytest.mark.slow
def test_killed_in_the_middle_nothing_is_lost_and_nothing_is_stored_twice(
    cluster: kafka.Cluster, process: Callable[[], Process]
) -> None:
    good, bad = 1200, 24
    messages = []
    for number in range(good):
        messages.append(incoming(number))
        if number % (good // bad) == 0:
            messages.append((None, b"{cut"))
    cluster.send(INLET, *messages)
    for mark in (1, good // 2):
        inlet = process()
        wait_until(lambda: Photo.objects.count() >= mark, 60, f"{mark} photos")  # noqa: B023
        inlet.end(signal.SIGKILL)
    assert Photo.objects.count() < good, "it was killed too late to prove anything"
    last = process()
    stored(good, 60)
    all_committed(cluster)
    assert last.end() == 0
    assert Photo.objects.count() == Event.objects.filter(type="photos.uploaded").count() == good
    assert Photo.objects.values("storage_key").distinct().count() == good
    letters = {(headers(one)["original-partition"], headers(one)["original-offset"])
               for one in cluster.messages(DLQ)}  # fmt: skip
    assert len(letters) == bad


@pytest.mark.slow
def test_it_stops_at_once_when_asked_with_all_offsets_committed(
    cluster: kafka.Cluster, process: Callable[[], Process]
) -> None:
    cluster.send(INLET, *[incoming(number) for number in range(50)], b"{cut")
    inlet = process()
    stored(50)
    wait_until(lambda: len(cluster.messages(DLQ)) == 1)
    assert inlet.end() == 0
    assert "photos_inlet: 50 photos stored, 0 known already, 1 messages to photo-dlq" in (
        inlet.output
    )
    assert cluster.left(INLET, GROUP) == 0


@pytest.mark.slow
def test_it_stops_when_asked_while_the_cluster_is_away(
    cluster: kafka.Cluster, process: Callable[[], Process]
) -> None:
    cluster.send(INLET, *[incoming(number) for number in range(50)])
    inlet = process()
    stored(50)
    cluster.go_away()
    assert inlet.end() == 0


@pytest.mark.slow
def test_a_second_inlet_takes_its_share_and_then_the_whole(
    cluster: kafka.Cluster, process: Callable[[], Process]
) -> None:
    first = process()
    wait_until(lambda: "assigned" in first.output, 30, "the first listens")
    second = process()
    wait_until(lambda: "assigned" in second.output, 40, "the second listens")
    for partition in (0, 1):
        numbers = range(partition, 40, 2)
        cluster.send(INLET, *[incoming(number) for number in numbers], partition=partition)
    stored(40)
    assert first.end() == 0
    cluster.send(INLET, *[incoming(number) for number in range(40, 60)])
    stored(60)
    all_committed(cluster)
    assert second.end() == 0
    assert Photo.objects.count() == Event.objects.count() == 60
    for one in (first, second):
        assert "photos_inlet: 0 photos" not in one.output, "both had a share"


@pytest.mark.parametrize("missing", ["PHOTOS_KAFKA_BROKERS", "PHOTOS_KAFKA_INLET_TOPIC"])
def test_without_its_settings_it_says_which_one_is_missing(
    process_env: dict[str, str], missing: str
) -> None:
    env = process_env | {"PHOTOS_KAFKA_BROKERS": "127.0.0.1:9", "PHOTOS_KAFKA_INLET_TOPIC": INLET}
    done = subprocess.run(
        [sys.executable, "manage.py", "photos_inlet"],
        cwd=ROOT, env=env | {missing: ""}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode
    assert missing in done.stderr
    assert "Traceback" not in done.stderr
