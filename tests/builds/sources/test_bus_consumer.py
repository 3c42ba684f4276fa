"""The bus as a source, on a real RabbitMQ; skipped, with the reason printed, where none answers."""

import json
import threading
from datetime import datetime

import amqp
import pytest
from django.db import connection

from tailrace.domains.builds.sources.bus_consumer import BusConsumer, split_url
from tailrace.domains.builds.sources.bus_message import BusMessage, source_id, to_event
from tailrace.events.models import Event
from tests.kit import PATIENCE, wait_until
from tests.servers.rabbit import Wire, exchange

NAMESPACE = "opensuse.obs"
FAIL = {"project": "home:alice", "package": "hello", "repository": "standard", "arch": "x86_64"}


@pytest.fixture
def rabbit():
    with exchange() as found:
        yield found


@pytest.fixture
def listen(rabbit, transactional_db):
    """Start a source on the exchange, and wait until it listens; return what ends it."""
    ends = []

    def start(queue="", url="", patience=PATIENCE, **more):
        bound, name = threading.Event(), rabbit.name
        url = url or split_url(rabbit.url)[0]
        source = BusConsumer(
            url, NAMESPACE, exchange=name, queue=queue, on_listening=bound.set, **more
        )
        thread = threading.Thread(target=source.run, daemon=True)
        thread.start()

        def end():
            source.stop.set()
            thread.join(PATIENCE)
            assert not thread.is_alive()

        ends.append(end)
        assert bound.wait(patience), "the source does not listen"
        return end

    yield start
    for end in ends:
        end()


@pytest.fixture
def durable_queue(rabbit):
    """The name of a queue that outlives its listener, removed in the end."""
    name = f"{rabbit.name}.kept"
    yield name
    rabbit.channel.queue_delete(name)


def publish(rabbit, key, body, **properties):
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    message = amqp.Message(text, content_type="application/json", **properties)
    rabbit.channel.basic_publish(message, rabbit.name, f"{NAMESPACE}.{key}")


def recorded(count):
    return wait_until(
        lambda: Event.objects.count() >= count and list(Event.objects.order_by("id")),
        what=f"{count} events from the bus",
    )


def test_a_message_becomes_the_event_of_its_routing_key(rabbit, listen):
    listen()
    publish(rabbit, "package.build_fail", FAIL | {"previouslyfailed": None, "bcnt": 3})
    (event,) = recorded(1)
    assert event.type == "builds.build_fail"
    assert event.subject == "home:alice/hello"
    assert event.payload == FAIL | {"previouslyfailed": None, "bcnt": "3"}
    assert event.problem == ""
    assert event.source.startswith("bus:127.0.0.1/")


def test_an_unknown_message_is_recorded_and_flagged(rabbit, listen):
    listen()
    publish(rabbit, "moon.phase", {"full": True})
    publish(rabbit, "package.commit", b"{cut")
    publish(rabbit, "package.commit", {"project": "p", "colour": "red"})
    events = recorded(3)
    assert [event.type for event in events] == ["builds.unknown"] * 2 + ["builds.commit"]
    assert events[0].payload["raw_type"] == "opensuse.obs.moon.phase"
    assert events[1].payload["data"] == "{cut"
    assert events[2].problem == "missing keys: package; unknown keys: colour"


def test_a_measurement_is_no_event(rabbit, listen):
    listen()
    publish(rabbit, "metrics", b"build,arch=x86_64,state=fail duration=300")
    publish(rabbit, "package.build_fail", FAIL)
    (event,) = recorded(1)
    assert event.type == "builds.build_fail"


def test_only_the_keys_of_the_setting_are_read(rabbit, listen):
    listen(keys=["request.#", "*.comment"])
    publish(rabbit, "package.build_fail", FAIL)
    publish(rabbit, "package.comment", {"project": "p", "package": "q", "id": 1})
    publish(rabbit, "request.create", {"number": 7})
    events = recorded(2)
    assert [event.type for event in events] == [
        "builds.comment_for_package", "builds.request_create",
    ]  # fmt: skip


def test_the_same_message_is_recorded_once(rabbit, listen):
    listen()
    for _ in range(3):
        publish(rabbit, "package.build_fail", FAIL, message_id="17")
    publish(rabbit, "package.build_fail", FAIL, message_id="18")
    publish(rabbit, "package.commit", {"project": "p", "package": "last"})
    events = recorded(3)
    assert [event.type for event in events] == [
        "builds.build_fail", "builds.build_fail", "builds.commit",
    ]  # fmt: skip


def test_a_named_queue_keeps_what_comes_while_nobody_listens(rabbit, listen, durable_queue):
    end = listen(durable_queue)
    end()
    publish(rabbit, "package.build_fail", FAIL)
    listen(durable_queue)
    assert recorded(1)[0].type == "builds.build_fail"


def test_it_is_acknowledged_only_when_the_event_is_committed(rabbit, listen, durable_queue, caplog):
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE tailrace_events_event RENAME TO events_away")
    try:
        end = listen(durable_queue)
        publish(rabbit, "package.build_fail", FAIL)
        wait_until(lambda: "bus.database_unavailable" in caplog.text)
        end()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE events_away RENAME TO tailrace_events_event")
    assert Event.objects.count() == 0
    listen(durable_queue)
    assert recorded(1)[0].type == "builds.build_fail"


def test_a_missing_exchange_is_logged_and_waited_for(rabbit, listen, caplog):
    rabbit.channel.exchange_delete(rabbit.name)
    with pytest.raises(AssertionError, match="does not listen"):
        listen(patience=0.5)
    wait_until(lambda: "bus.disconnected" in caplog.text and "no exchange" in caplog.text)
    rabbit.channel.exchange_declare(rabbit.name, "topic", durable=True, auto_delete=False)
    listen()
    publish(rabbit, "package.build_fail", FAIL)
    assert recorded(1)[0].type == "builds.build_fail"


def test_a_broken_connection_is_replaced(rabbit, listen, durable_queue, caplog):
    wire = Wire(cut_after=10**9)
    try:
        listen(durable_queue, url=wire.url)
        publish(rabbit, "package.build_fail", FAIL, message_id="1")
        recorded(1)
        wire.cut()
        wait_until(lambda: "bus.disconnected" in caplog.text, what="the consumer notices it")
        publish(rabbit, "package.build_fail", FAIL, message_id="2")
        recorded(2)
    finally:
        wire.close()


def test_equal_messages_differ_by_id_timestamp_or_time(clock):
    plain = BusMessage("k", b"{}")
    first = source_id(plain)
    assert source_id(BusMessage("k", b"{}", timestamp=7)) != first
    assert source_id(BusMessage("k", b"{}", "m1")) != source_id(BusMessage("k", b"{}", "m2"))
    assert source_id(BusMessage("k", b"[]")) != first
    clock.step(301)
    assert source_id(plain) != first


def test_the_brokers_time_is_when_it_happened():
    event = to_event(
        BusMessage("opensuse.obs.package.commit", b'{"user":"bob"}', timestamp=1_795_220_447),
        NAMESPACE,
        "bus:x/pubsub",
    )
    assert isinstance(event.occurred_at, datetime)
    assert event.occurred_at.timestamp() == 1_795_220_447
    assert event.actor == "bob"
