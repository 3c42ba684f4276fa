"""The publisher, with the mock cluster of librdkafka."""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User

from tailrace.domains.photos.exchange.kafka import producer as producers
from tailrace.domains.photos.exchange.kafka.message import Message
from tailrace.domains.photos.models import Photo
from tailrace.domains.photos.uploads.deletion.delete_photos import delete_photos
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.destinations.delivery import DeliveryStatus
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.models import Attempt, Breaker
from tailrace.jobs.operations.replay import replay
from tests.kit import at_once, claimed, run_and_settle, wait_until, worker
from tests.photos.kafka.kit import (
    DELETIONS_QUEUE,
    UPDATES,
    UPDATES_QUEUE,
    UPLOADS,
    UPLOADS_QUEUE,
    gathered,
    headers,
    jobs,
    photo,
    photos,
    states,
)
from tests.security.remains import rows_with
from tests.servers import kafka

pytestmark = [pytest.mark.once, pytest.mark.django_db(transaction=True)]

TOO_LARGE, NOT_ENOUGH_REPLICAS, UNKNOWN_TOPIC, FORBIDDEN, OUT_OF_ORDER = 10, 19, 3, 29, 45


@pytest.fixture
def cluster(settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[kafka.Cluster]:
    monkeypatch.setattr(producers, "DELIVERY_SECONDS", 3)
    monkeypatch.setattr(producers, "TOPIC_SECONDS", 1)
    with kafka.running() as running:
        settings.PHOTOS_KAFKA_BROKERS = running.brokers.split(",")
        for topic in (UPLOADS, UPDATES):
            running.topic(topic)
        yield running


def test_without_brokers_there_are_no_jobs() -> None:
    photo()
    gathered(1)
    assert jobs(UPLOADS_QUEUE) == jobs(UPDATES_QUEUE) == []


def test_an_upload_is_published_once_with_event_headers(
    cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    stored = photo(7)
    run_jobs(UPLOADS_QUEUE)
    run_jobs(UPLOADS_QUEUE)
    (message,) = cluster.messages(UPLOADS)
    assert message.key() == b"p/7.jpg"
    assert json.loads(message.value()) == {
        "photo": stored.pk,
        "lat": 50.07,
        "lon": 8.5,
        "taken_at": "2026-07-01T12:00:00Z",
        "storage_key": "p/7.jpg",
    }
    (job,) = jobs(UPLOADS_QUEUE)
    assert headers(message) == {
        "event-id": str(job.event_id),
        "event-type": "photos.uploaded",
        "event-time": job.event.occurred_at.isoformat(),
        "event-subject": f"photo/{stored.pk}",
        "content-type": "application/json",
    }
    assert job.state == "completed"
    assert job.result == {"partition": message.partition(), "offset": message.offset()}


def delete(*photos: Photo) -> None:
    """Delete these photos as their owner does."""
    ids = [each.pk for each in photos]
    owner = User.objects.get_or_create(username="ann")[0]
    Photo.objects.filter(pk__in=ids).update(user=owner)
    assert delete_photos(ids, owner.pk) == ids


def test_a_deletion_is_published_without_a_value_and_forgotten(
    cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    stored = photo(7)
    run_jobs(UPLOADS_QUEUE)
    delete(stored)
    assert rows_with("p/7.jpg"), "the key of the message"
    run_jobs(DELETIONS_QUEUE)
    assert states(DELETIONS_QUEUE) == ["completed"]
    upload, deletion = cluster.messages(UPLOADS)
    assert (deletion.key(), deletion.value()) == (upload.key(), None)
    assert deletion.partition() == upload.partition()
    assert headers(deletion)["event-type"] == "photos.deleted"
    assert headers(deletion)["event-subject"] == f"photo/{stored.pk}"
    assert rows_with("p/7.jpg") == []
    replay([job.id for job in jobs(DELETIONS_QUEUE)])
    run_jobs(DELETIONS_QUEUE)
    assert len(cluster.messages(UPLOADS)) == 2


def test_a_photo_that_was_not_sent_is_not_sent_as_deleted(
    cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    delete(photo(7))
    run_jobs(UPLOADS_QUEUE, DELETIONS_QUEUE)
    assert states(DELETIONS_QUEUE) == []
    assert rows_with("p/7.jpg") == []
    assert cluster.messages(UPLOADS) == []


def test_a_deletion_waits_while_its_photo_is_being_sent(
    cluster: kafka.Cluster, run_jobs: Callable, clock
) -> None:
    stored = photo(7)
    sending = claimed(UPLOADS_QUEUE)
    delete(stored)
    run_jobs(DELETIONS_QUEUE)
    [job] = jobs(DELETIONS_QUEUE)
    assert (job.state, job.attempt) == ("pending", 0)
    run_and_settle(sending)
    clock.step(2)
    run_jobs(DELETIONS_QUEUE)
    assert states(DELETIONS_QUEUE) == ["completed"]
    assert cluster.messages(UPLOADS)[-1].value() is None


def test_a_dissolved_gathering_is_published_behind_its_start(
    cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    gathered(1)
    publish(NewEvent("photos.gathering_dissolved", {"gathering": 1}))
    while run_jobs(UPDATES_QUEUE):
        pass
    messages = cluster.messages(UPDATES)
    types = [headers(message)["event-type"] for message in messages]
    assert types == ["photos.gathering_started", "photos.gathering_dissolved"]
    assert json.loads(messages[1].value()) == {"gathering": 1}


def test_message_order_holds_with_several_workers(
    cluster: kafka.Cluster,
) -> None:
    published = defaultdict(list)
    for step in range(12):
        for number in range(6):
            event = gathered(number, count=5 + step)
            published[str(number).encode()].append(str(event.id))

    def work(_: int) -> None:
        wait_until(lambda: not drain(UPDATES_QUEUE) and set(states(UPDATES_QUEUE)) == {"completed"})

    at_once(3, work)
    received = defaultdict(list)
    for message in cluster.messages(UPDATES):
        received[message.key()].append(headers(message)["event-id"])
    assert received == published


def test_a_message_waits_for_the_previous_acknowledgement(
    cluster: kafka.Cluster,
) -> None:
    started, finalized, other = gathered(1), gathered(1, "finalized"), gathered(2)
    heads = claimed(UPDATES_QUEUE)
    assert [job.event.id for job in heads] == [started.id, other.id]
    assert claimed(UPDATES_QUEUE) == []
    run_and_settle(heads)
    (last,) = claimed(UPDATES_QUEUE)
    assert last.event.id == finalized.id
    run_and_settle([last])
    received = [
        headers(message)["event-id"]
        for message in cluster.messages(UPDATES)
        if message.key() == b"1"
    ]
    assert received == [str(started.id), str(finalized.id)]


def test_message_order_holds_after_a_retry(
    cluster: kafka.Cluster, run_jobs: Callable, clock
) -> None:
    first, second = gathered(1), gathered(1, "finalized")
    other = gathered(2)
    cluster.refuse_topic(UPDATES, FORBIDDEN)
    run_jobs(UPDATES_QUEUE)
    assert states(UPDATES_QUEUE) == ["pending"] * 3
    cluster.refuse_topic(UPDATES, 0)
    producers._open.clear()  # the client asks about a topic again after a while
    for _ in range(6):
        clock.step(10)
        run_jobs(UPDATES_QUEUE)
    assert states(UPDATES_QUEUE) == ["completed"] * 3
    received = defaultdict(list)
    for message in cluster.messages(UPDATES):
        received[message.key()].append(int(headers(message)["event-id"]))
    assert received == {b"1": [first.id, second.id], b"2": [other.id]}


def test_all_gatherings_are_sent_when_the_topic_recovers(
    cluster: kafka.Cluster, run_jobs: Callable, clock
) -> None:
    for number in range(10):
        gathered(number)
    cluster.refuse_topic(UPDATES, FORBIDDEN)
    run_jobs(UPDATES_QUEUE)
    clock.step(8)
    run_jobs(UPDATES_QUEUE)
    waits = {job.due_at for job in jobs(UPDATES_QUEUE) if not job.attempt}
    assert max(waits) > clock.now(), "their waits grow"
    cluster.refuse_topic(UPDATES, 0)
    producers._open.clear()
    for _ in range(60):
        clock.step(1)
        if run_jobs(UPDATES_QUEUE):
            break
    assert states(UPDATES_QUEUE).count("completed") >= 9, "all but the one that was charged"


@pytest.mark.slow
def test_an_outage_charges_few_jobs(cluster: kafka.Cluster, run_jobs: Callable, clock) -> None:
    photos(30)
    cluster.go_away()
    run_jobs(UPLOADS_QUEUE)
    assert states(UPLOADS_QUEUE) == ["pending"] * 30
    assert sum(job.attempt for job in jobs(UPLOADS_QUEUE)) == 1
    assert Breaker.objects.get().state_at(clock.now()) == "open"
    assert "refused" in Attempt.objects.get(outcome="retried").message.lower()
    cluster.come_back()
    clock.step(20)
    run_jobs(UPLOADS_QUEUE)
    clock.step(20)
    run_jobs(UPLOADS_QUEUE)
    assert states(UPLOADS_QUEUE) == ["completed"] * 30
    assert len({headers(message)["event-id"] for message in cluster.messages(UPLOADS)}) == 30


def test_a_short_cluster_error_is_retried_by_the_client(
    cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    photo(0)
    run_jobs(UPLOADS_QUEUE)
    photo(1)
    cluster.answer_produce(NOT_ENOUGH_REPLICAS)
    run_jobs(UPLOADS_QUEUE)
    assert states(UPLOADS_QUEUE) == ["completed"] * 2
    assert [job.attempt for job in jobs(UPLOADS_QUEUE)] == [1, 1]
    assert len(cluster.messages(UPLOADS)) == 2


def test_only_the_too_large_message_of_a_batch_fails(
    cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    cluster.topic("one", 1)
    for number in range(3):
        photo(number)
    sent = [
        Message("one", None, b"%d" % number, [("event-id", b"%d" % number)]) for number in range(3)
    ]
    producer = producers.producer()
    assert [verdict.status for verdict in producer.send(sent)] == [DeliveryStatus.SENT] * 3
    # The batch as a whole, then each alone: the second one is at fault.
    cluster.answer_produce(TOO_LARGE, 0, TOO_LARGE, 0)
    verdicts = producer.send(sent)
    assert [verdict.status for verdict in verdicts] == [
        DeliveryStatus.SENT,
        DeliveryStatus.REJECTED,
        DeliveryStatus.SENT,
    ]
    assert "too large" in verdicts[1].reason
    assert len(cluster.messages("one")) == 5


def test_a_rejected_message_fails_and_can_be_replayed(
    cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    photo()
    cluster.answer_produce(TOO_LARGE)
    run_jobs(UPLOADS_QUEUE)
    (job,) = jobs(UPLOADS_QUEUE)
    assert job.state == "failed"
    assert "too large" in job.error
    assert cluster.brokers in job.error
    replay([job.id])
    run_jobs(UPLOADS_QUEUE)
    assert states(UPLOADS_QUEUE) == ["completed"]


def test_a_message_above_the_client_limit_is_rejected(
    cluster: kafka.Cluster,
) -> None:
    verdicts = producers.producer().send(
        [Message(UPLOADS, None, b"x" * size, []) for size in (10, 2_000_000, 10)]
    )
    assert [verdict.status for verdict in verdicts] == [
        DeliveryStatus.SENT,
        DeliveryStatus.REJECTED,
        DeliveryStatus.SENT,
    ]


@pytest.mark.slow
def test_a_missing_topic_is_named_and_blocks_no_other(
    settings, cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    settings.PHOTOS_KAFKA_UPLOADS_TOPIC = "nowhere"
    cluster.refuse_topic("nowhere", UNKNOWN_TOPIC)
    photo()
    gathered(1)
    run_jobs(UPLOADS_QUEUE, UPDATES_QUEUE)
    assert states(UPLOADS_QUEUE) == ["pending"]
    assert states(UPDATES_QUEUE) == ["completed"]
    breaker = Breaker.objects.get(open_until__isnull=False)
    assert breaker.name == "photos.kafka_uploads:nowhere"
    assert "has to exist" in breaker.last_error


def test_a_broken_producer_is_replaced(cluster: kafka.Cluster, run_jobs: Callable, clock) -> None:
    photo(0)
    run_jobs(UPLOADS_QUEUE)
    before = producers.producer()
    cluster.answer_produce(OUT_OF_ORDER)
    photos_before = len(cluster.messages(UPLOADS))
    for number in range(1, 4):
        photo(number)
    run_jobs(UPLOADS_QUEUE)
    for _ in range(3):
        clock.step(20)
        run_jobs(UPLOADS_QUEUE)
    assert states(UPLOADS_QUEUE) == ["completed"] * 4
    ids = {headers(message)["event-id"] for message in cluster.messages(UPLOADS)}
    assert len(ids) == photos_before + 3
    assert before.broken
    assert producers.producer() is not before


def test_each_process_has_its_own_producer_after_a_fork(cluster: kafka.Cluster) -> None:
    message = Message(UPLOADS, None, b"{}", [])
    ours = producers.producer()
    assert ours.send([message])[0].status is DeliveryStatus.SENT
    child = os.fork()
    if not child:
        own = producers.producer()
        os._exit(
            0 if own is not ours and own.send([message])[0].status is DeliveryStatus.SENT else 1
        )
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert producers.producer() is ours
    assert ours.send([message])[0].status is DeliveryStatus.SENT
    assert len(cluster.messages(UPLOADS)) == 3


@pytest.mark.slow
def test_real_workers_publish_uploads(
    cluster: kafka.Cluster, process_env: dict[str, str], tmp_path
) -> None:
    env = process_env | {"PHOTOS_KAFKA_BROKERS": cluster.brokers}
    photos(40)
    with worker(env, [UPLOADS_QUEUE], log=tmp_path / "worker.log", concurrency=2):
        drained = lambda: set(states(UPLOADS_QUEUE)) == {"completed"}  # noqa: E731
        photo(99)  # wakes the queue
        wait_until(drained, 40)
    assert len(cluster.messages(UPLOADS)) == 41


def test_without_the_package_jobs_name_what_to_install(
    settings, monkeypatch: pytest.MonkeyPatch, run_jobs: Callable
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    settings.PHOTOS_KAFKA_BROKERS = ["127.0.0.1:9"]
    producers._open.clear()
    photo()
    run_jobs(UPLOADS_QUEUE)
    (job,) = jobs(UPLOADS_QUEUE)
    assert job.state == "pending"
    assert "install tailrace[kafka]" in Breaker.objects.get().last_error


def test_an_unknown_client_option_is_named(settings, run_jobs: Callable) -> None:
    settings.PHOTOS_KAFKA_BROKERS = ["127.0.0.1:9"]
    settings.PHOTOS_KAFKA_OPTIONS = {"sasl.pasword": "x"}
    photo()
    run_jobs(UPLOADS_QUEUE)
    assert states(UPLOADS_QUEUE) == ["pending"]
    assert "sasl.pasword" in Breaker.objects.get().last_error


def test_jobs_fail_when_the_brokers_are_unset(
    settings, cluster: kafka.Cluster, run_jobs: Callable
) -> None:
    photo()
    settings.PHOTOS_KAFKA_BROKERS = []
    run_jobs(UPLOADS_QUEUE)
    (job,) = jobs(UPLOADS_QUEUE)
    assert job.state == "failed"
    assert "PHOTOS_KAFKA_BROKERS" in job.error
