"""The outlet, on the cluster that librdkafka has built in."""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest

from domains.photos.kafka import producer as producers
from domains.photos.kafka.message import Message
from jobs.destination import Fate
from jobs.drain import drain
from jobs.models import Attempt, Breaker
from jobs.operate import replay
from tests.kit import at_once, claimed, run_and_settle, wait_until, worker
from tests.photos.kafka_kit import (
    TELL_UPDATES,
    TELL_UPLOADS,
    UPDATES,
    UPLOADS,
    gathered,
    headers,
    jobs,
    photo,
    photos,
    states,
)
from tests.servers import kafka

pytestmark = pytest.mark.django_db(transaction=True)

TOO_LARGE, NOT_ENOUGH_REPLICAS, UNKNOWN_TOPIC, FORBIDDEN, OUT_OF_ORDER = 10, 19, 3, 29, 45


@pytest.fixture
def cluster(settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[kafka.Cluster]:
    monkeypatch.setattr(producers, "ANSWER_SECONDS", 3)
    monkeypatch.setattr(producers, "TOPIC_SECONDS", 1)
    with kafka.running() as running:
        settings.PHOTOS_KAFKA_BROKERS = running.brokers.split(",")
        for topic in (UPLOADS, UPDATES):
            running.topic(topic)
        yield running


def test_without_brokers_no_job_is_owed() -> None:
    photo()
    gathered(1)
    assert jobs(TELL_UPLOADS) == jobs(TELL_UPDATES) == []


def test_an_upload_is_announced_once_with_its_envelope_in_headers(
    cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    stored = photo(7)
    run_jobs(TELL_UPLOADS)
    run_jobs(TELL_UPLOADS)
    (message,) = cluster.messages(UPLOADS)
    assert message.key() == b"p/7.jpg"
    assert json.loads(message.value()) == {
        "photo": stored.pk,
        "lat": 50.07,
        "lon": 8.5,
        "taken_at": "2026-07-01T12:00:00Z",
        "storage_key": "p/7.jpg",
    }
    (job,) = jobs(TELL_UPLOADS)
    assert headers(message) == {
        "event-id": str(job.event_id),
        "event-type": "photos.uploaded",
        "event-time": job.event.occurred_at.isoformat(),
        "event-subject": f"photo/{stored.pk}",
        "content-type": "application/json",
    }
    assert job.state == "completed"
    assert job.result == {"partition": message.partition(), "offset": message.offset()}


def test_a_gatherings_messages_keep_their_order_with_several_workers(
    cluster: kafka.Cluster,
) -> None:
    told = defaultdict(list)
    for step in range(12):
        for number in range(6):
            event = gathered(number, count=5 + step)
            told[str(number).encode()].append(str(event.id))

    def work(_: int) -> None:
        wait_until(lambda: not drain(TELL_UPDATES) and set(states(TELL_UPDATES)) == {"completed"})

    at_once(3, work)
    came = defaultdict(list)
    for message in cluster.messages(UPDATES):
        came[message.key()].append(headers(message)["event-id"])
    assert came == told


def test_a_gatherings_next_message_waits_until_the_one_before_it_is_acknowledged(
    cluster: kafka.Cluster,
) -> None:
    started, finalized, other = gathered(1), gathered(1, "finalized"), gathered(2)
    heads = claimed(TELL_UPDATES)
    assert [job.event.id for job in heads] == [started.id, other.id]
    assert claimed(TELL_UPDATES) == []
    run_and_settle(heads)
    (last,) = claimed(TELL_UPDATES)
    assert last.event.id == finalized.id
    run_and_settle([last])
    came = [headers(one)["event-id"] for one in cluster.messages(UPDATES) if one.key() == b"1"]
    assert came == [str(started.id), str(finalized.id)]


def test_a_gatherings_messages_keep_their_order_when_one_has_to_be_sent_again(
    cluster: kafka.Cluster, run_jobs: Callable, clock
) -> None:
    first, second = gathered(1), gathered(1, "finalized")
    other = gathered(2)
    cluster.refuse_topic(UPDATES, FORBIDDEN)
    run_jobs(TELL_UPDATES)
    assert states(TELL_UPDATES) == ["pending"] * 3
    cluster.refuse_topic(UPDATES, 0)
    producers._open.clear()  # the client asks about a topic again after a while
    for _ in range(6):
        clock.step(10)
        run_jobs(TELL_UPDATES)
    assert states(TELL_UPDATES) == ["completed"] * 3
    came = defaultdict(list)
    for message in cluster.messages(UPDATES):
        came[message.key()].append(int(headers(message)["event-id"]))
    assert came == {b"1": [first.id, second.id], b"2": [other.id]}


def test_when_the_topic_is_back_all_gatherings_go_at_once(
    cluster: kafka.Cluster, run_jobs: Callable, clock
) -> None:
    for number in range(10):
        gathered(number)
    cluster.refuse_topic(UPDATES, FORBIDDEN)
    run_jobs(TELL_UPDATES)
    clock.step(8)
    run_jobs(TELL_UPDATES)
    waits = {job.due_at for job in jobs(TELL_UPDATES) if not job.attempt}
    assert max(waits) > clock.now(), "their waits grow"
    cluster.refuse_topic(UPDATES, 0)
    producers._open.clear()
    for _ in range(60):
        clock.step(1)
        if run_jobs(TELL_UPDATES):
            break
    assert states(TELL_UPDATES).count("completed") >= 9, "all but the one that was charged"


@pytest.mark.slow
def test_while_the_cluster_is_away_all_wait_and_few_are_charged(
    cluster: kafka.Cluster, run_jobs: Callable, clock
) -> None:
    photos(30)
    cluster.go_away()
    run_jobs(TELL_UPLOADS)
    assert states(TELL_UPLOADS) == ["pending"] * 30
    assert sum(job.attempt for job in jobs(TELL_UPLOADS)) == 1
    assert "left alone" in Breaker.objects.get().stands_at(clock.now())
    assert "refused" in Attempt.objects.get(outcome="retried").message.lower()
    cluster.come_back()
    clock.step(20)
    run_jobs(TELL_UPLOADS)
    clock.step(20)
    run_jobs(TELL_UPLOADS)
    assert states(TELL_UPLOADS) == ["completed"] * 30
    assert len({headers(one)["event-id"] for one in cluster.messages(UPLOADS)}) == 30


def test_a_hiccup_of_the_cluster_is_no_business_of_the_jobs(
    cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    photo(0)
    run_jobs(TELL_UPLOADS)
    photo(1)
    cluster.answer_produce(NOT_ENOUGH_REPLICAS)
    run_jobs(TELL_UPLOADS)
    assert states(TELL_UPLOADS) == ["completed"] * 2
    assert [job.attempt for job in jobs(TELL_UPLOADS)] == [1, 1]
    assert len(cluster.messages(UPLOADS)) == 2


def test_of_a_batch_only_the_message_that_is_too_large_fails(
    cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    cluster.topic("one", 1)
    for number in range(3):
        photo(number)
    sent = [
        Message("one", None, b"%d" % number, [("event-id", b"%d" % number)]) for number in range(3)
    ]
    producer = producers.producer()
    assert [verdict.fate for verdict in producer.send(sent)] == [Fate.SENT] * 3
    # The batch as a whole, then each alone: the second one is at fault.
    cluster.answer_produce(TOO_LARGE, 0, TOO_LARGE, 0)
    verdicts = producer.send(sent)
    assert [verdict.fate for verdict in verdicts] == [Fate.SENT, Fate.REFUSED, Fate.SENT]
    assert "too large" in verdicts[1].reason
    assert len(cluster.messages("one")) == 5


def test_a_message_that_the_cluster_never_takes_fails_at_once_and_can_be_replayed(
    cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    photo()
    cluster.answer_produce(TOO_LARGE)
    run_jobs(TELL_UPLOADS)
    (job,) = jobs(TELL_UPLOADS)
    assert job.state == "failed"
    assert "too large" in job.error
    assert cluster.brokers in job.error
    replay([job.id])
    run_jobs(TELL_UPLOADS)
    assert states(TELL_UPLOADS) == ["completed"]


def test_a_message_larger_than_the_client_takes_is_refused_and_the_others_go(
    cluster: kafka.Cluster,
) -> None:
    verdicts = producers.producer().send(
        [Message(UPLOADS, None, b"x" * size, []) for size in (10, 2_000_000, 10)]
    )
    assert [verdict.fate for verdict in verdicts] == [Fate.SENT, Fate.REFUSED, Fate.SENT]


@pytest.mark.slow
def test_a_topic_that_does_not_exist_is_named_and_holds_up_no_other(
    settings, cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    settings.PHOTOS_KAFKA_UPLOADS_TOPIC = "nowhere"
    cluster.refuse_topic("nowhere", UNKNOWN_TOPIC)
    photo()
    gathered(1)
    run_jobs(TELL_UPLOADS, TELL_UPDATES)
    assert states(TELL_UPLOADS) == ["pending"]
    assert states(TELL_UPDATES) == ["completed"]
    breaker = Breaker.objects.get(open_until__isnull=False)
    assert breaker.name == "photos.kafka_uploads:nowhere"
    assert "has to exist" in breaker.last_error


def test_a_producer_that_broke_for_good_is_replaced(
    cluster: kafka.Cluster, run_jobs: Callable, clock
) -> None:
    photo(0)
    run_jobs(TELL_UPLOADS)
    before = producers.producer()
    cluster.answer_produce(OUT_OF_ORDER)
    photos_before = len(cluster.messages(UPLOADS))
    for number in range(1, 4):
        photo(number)
    run_jobs(TELL_UPLOADS)
    for _ in range(3):
        clock.step(20)
        run_jobs(TELL_UPLOADS)
    assert states(TELL_UPLOADS) == ["completed"] * 4
    ids = {headers(one)["event-id"] for one in cluster.messages(UPLOADS)}
    assert len(ids) == photos_before + 3
    assert before.broken
    assert producers.producer() is not before


def test_each_process_has_a_producer_of_its_own_after_a_fork(cluster: kafka.Cluster) -> None:
    message = Message(UPLOADS, None, b"{}", [])
    ours = producers.producer()
    assert ours.send([message])[0].fate is Fate.SENT
    child = os.fork()
    if not child:
        own = producers.producer()
        os._exit(0 if own is not ours and own.send([message])[0].fate is Fate.SENT else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert producers.producer() is ours
    assert ours.send([message])[0].fate is Fate.SENT
    assert len(cluster.messages(UPLOADS)) == 3


@pytest.mark.slow
@pytest.mark.broker
def test_real_workers_announce_what_was_uploaded(
    cluster: kafka.Cluster, process_env: dict[str, str], tmp_path
) -> None:
    env = process_env | {"PHOTOS_KAFKA_BROKERS": cluster.brokers}
    photos(40)
    with worker(env, [TELL_UPLOADS], log=tmp_path / "worker.log", concurrency=2):
        drained = lambda: set(states(TELL_UPLOADS)) == {"completed"}  # noqa: E731
        photo(99)  # wakes the queue
        wait_until(drained, 40)
    assert len(cluster.messages(UPLOADS)) == 41


def test_without_the_package_the_jobs_wait_and_say_what_to_install(
    settings, monkeypatch: pytest.MonkeyPatch, run_jobs: Callable
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    settings.PHOTOS_KAFKA_BROKERS = ["127.0.0.1:9"]
    producers._open.clear()
    photo()
    run_jobs(TELL_UPLOADS)
    (job,) = jobs(TELL_UPLOADS)
    assert job.state == "pending"
    assert "pip install -r requirements-kafka.txt" in Breaker.objects.get().last_error


def test_an_option_that_the_client_does_not_know_is_named(settings, run_jobs: Callable) -> None:
    settings.PHOTOS_KAFKA_BROKERS = ["127.0.0.1:9"]
    settings.PHOTOS_KAFKA_OPTIONS = {"sasl.pasword": "x"}
    photo()
    run_jobs(TELL_UPLOADS)
    assert states(TELL_UPLOADS) == ["pending"]
    assert "sasl.pasword" in Breaker.objects.get().last_error


def test_jobs_of_a_cluster_that_is_named_no_more_fail_and_can_be_replayed(
    settings, cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    photo()
    settings.PHOTOS_KAFKA_BROKERS = []
    run_jobs(TELL_UPLOADS)
    (job,) = jobs(TELL_UPLOADS)
    assert job.state == "failed"
    assert "PHOTOS_KAFKA_BROKERS" in job.error
