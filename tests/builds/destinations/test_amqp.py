import json
import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tailrace.domains.builds.destinations.amqp import AmqpBus
from tailrace.domains.builds.destinations.base import Message
from tailrace.domains.builds.destinations.connections import connect
from tailrace.jobs.destinations.delivery import DeliveryStatus
from tests.builds.destinations.kit import messages
from tests.servers.rabbit import URL, Exchange, Wire, exchange
from tests.servers.web import closed_port, silent_port


@pytest.fixture
def rabbit() -> Iterator[Exchange]:
    with exchange() as found:
        yield found


@pytest.fixture
def bus(rabbit: Exchange) -> Iterator[AmqpBus]:
    bus = AmqpBus("rabbit", rabbit.url)
    yield bus
    bus.close()


def fates(deliveries: list) -> list[DeliveryStatus]:
    return [delivery.status for delivery in deliveries]


def test_messages_are_persistent_json_with_ids_and_keys(rabbit: Exchange, bus: AmqpBus) -> None:
    assert fates(bus.send(messages(3))) == [DeliveryStatus.SENT] * 3
    got = rabbit.messages()
    assert [json.loads(message.body) for message in got] == [{"rev": str(n)} for n in (1, 2, 3)]
    assert [message.properties["message_id"] for message in got] == ["1", "2", "3"]
    assert got[0].delivery_info["routing_key"] == "opensuse.obs.package.commit.n1"
    assert got[0].properties["delivery_mode"] == 2
    assert got[0].properties["content_type"] == "application/json"


def test_the_connection_is_kept_from_batch_to_batch(rabbit: Exchange, bus: AmqpBus) -> None:
    bus.send(messages(150))
    connection = bus.connection
    assert fates(bus.send(messages(150))) == [DeliveryStatus.SENT] * 150
    assert bus.connection is connection
    assert len(rabbit.messages()) == 300


def test_a_connection_closed_by_the_broker_is_replaced(rabbit: Exchange, bus: AmqpBus) -> None:
    bus.send(messages(1))
    assert bus.connection is not None
    bus.connection.transport.sock.shutdown(2)
    assert fates(bus.send(messages(2))) == [DeliveryStatus.SENT] * 2
    assert len(rabbit.messages()) == 3


def test_a_forked_child_leaves_its_parents_connection_alone(rabbit: Exchange, settings) -> None:
    settings.BUS_BACKENDS = {"rabbit": rabbit.url}
    parents = connect("rabbit")
    parents.send(messages(1))
    child = os.fork()
    if child == 0:
        ours = connect("rabbit")
        good = ours is not parents and fates(ours.send(messages(1))) == [DeliveryStatus.SENT]
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert fates(parents.send(messages(1))) == [DeliveryStatus.SENT]
    assert len(rabbit.messages()) == 3
    parents.close()


def test_an_exchange_that_does_not_exist_is_a_clear_error(rabbit: Exchange) -> None:
    bus = AmqpBus("rabbit", f"{URL}?exchange=tailrace-nowhere")
    deliveries = bus.send(messages(2))
    assert fates(deliveries) == [DeliveryStatus.UNAVAILABLE, DeliveryStatus.NOT_TRIED]
    assert "NOT_FOUND" in deliveries[0].reason
    assert "'tailrace-nowhere' must exist" in deliveries[0].reason


def test_an_exchange_that_rejects_messages_is_a_clear_error(rabbit: Exchange) -> None:
    bus = AmqpBus("rabbit", f"{URL}?exchange=amq.rabbitmq.trace")
    deliveries = bus.send(messages(2))
    assert fates(deliveries) == [DeliveryStatus.UNAVAILABLE, DeliveryStatus.NOT_TRIED]
    assert "ACCESS_REFUSED" in deliveries[0].reason or "FORBIDDEN" in deliveries[0].reason


def test_a_wrong_password_is_a_clear_error_without_the_password(rabbit: Exchange) -> None:
    where = urlsplit(URL)
    bus = AmqpBus("rabbit", f"amqp://guest:s3cr3t-word@{where.hostname}:{where.port}/")
    reason = bus.send(messages(1))[0].reason
    assert "ACCESS_REFUSED" in reason
    assert "s3cr3t-word" not in reason
    assert "amqp://***@" in reason


def test_a_broker_that_is_down_is_unavailable_at_once() -> None:
    bus = AmqpBus("rabbit", f"amqp://guest:guest@127.0.0.1:{closed_port()}/")
    deliveries = bus.send(messages(2))
    assert fates(deliveries) == [DeliveryStatus.UNAVAILABLE, DeliveryStatus.NOT_TRIED]
    assert "refused" in deliveries[0].reason


def test_a_broker_that_never_answers_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tailrace.domains.builds.destinations.amqp.CONNECT_SECONDS", 0.3)
    with silent_port() as port:
        deliveries = AmqpBus("rabbit", f"amqp://guest:guest@127.0.0.1:{port}/").send(messages(1))
    assert fates(deliveries) == [DeliveryStatus.UNAVAILABLE]
    assert "timed out" in deliveries[0].reason


def test_a_batch_that_is_interrupted_loses_nothing(rabbit: Exchange) -> None:
    """What was confirmed is sent; from the first that was not, all go again."""
    wire = Wire(cut_after=20_000)
    bus = AmqpBus("rabbit", f"{wire.url}?exchange={rabbit.name}")
    many = [Message(n, "k", b'"%s"' % (b"x" * 200)) for n in range(1, 201)]
    deliveries = bus.send(many)
    wire.close()
    sent = [m.id for m, d in zip(many, deliveries, strict=True) if d.status is DeliveryStatus.SENT]
    rest = [m for m, d in zip(many, deliveries, strict=True) if d.status is not DeliveryStatus.SENT]
    assert DeliveryStatus.UNAVAILABLE in fates(deliveries)
    assert rest
    again = AmqpBus("rabbit", rabbit.url)
    assert set(fates(again.send(rest))) == {DeliveryStatus.SENT}
    again.close()
    arrived = {int(message.properties["message_id"]) for message in rabbit.messages()}
    assert arrived == set(range(1, 201))
    assert set(sent) <= arrived
