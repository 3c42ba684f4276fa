"""A vhost on a real RabbitMQ; without a RabbitMQ the tests are skipped with the reason."""

import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import amqp
import pytest

URL = os.environ.get("TEST_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/")


@dataclass
class Exchange:
    """A topic exchange, and a queue bound to it that keeps all it gets."""

    url: str
    """As BUS_BACKENDS takes it."""
    name: str
    queue: str
    channel: amqp.Channel

    def messages(self) -> list[amqp.Message]:
        """Take all messages that have arrived."""
        messages = []
        while (message := self.channel.basic_get(self.queue, no_ack=True)) is not None:
            messages.append(message)
        return messages


@contextmanager
def exchange() -> Iterator[Exchange]:
    """Declare a new exchange and queue, and remove them afterwards."""
    name = f"tailrace-test-{uuid.uuid4().hex[:12]}"
    with closing(_connect()) as connection:
        channel = connection.channel()
        channel.exchange_declare(name, "topic", durable=True, auto_delete=False)
        queue = channel.queue_declare("", exclusive=True).queue
        channel.queue_bind(queue, name, "#")
        try:
            yield Exchange(f"{URL}?exchange={name}", name, queue, channel)
        finally:
            with suppress(amqp.AMQPError):
                channel.exchange_delete(name)


def _connect() -> amqp.Connection:
    parts = urlsplit(URL)
    connection = amqp.Connection(
        f"{parts.hostname}:{parts.port or 5672}",
        parts.username or "guest",
        parts.password or "guest",
        virtual_host=parts.path[1:] or "/",
        connect_timeout=3,
    )
    try:
        connection.connect()
    except (OSError, amqp.AMQPError) as error:
        pytest.skip(f"no RabbitMQ at {parts.hostname}:{parts.port}: {error}")
    return connection


class Wire:
    """A TCP relay to RabbitMQ that can be cut after so many bytes from the client, or muted."""

    def __init__(self, cut_after: int) -> None:
        self.left = cut_after
        self.muted = threading.Event()
        """While it is set, what either side says is lost."""
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        parts = urlsplit(URL)
        return parts._replace(
            netloc=f"{parts.username}:{parts.password}@127.0.0.1:{self.port}"
        ).geturl()

    def close(self) -> None:
        self.listening.close()
        self.cut()

    def cut(self) -> None:
        for client in self.sockets:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        parts = urlsplit(URL)
        with suppress(OSError):
            while True:
                client, _address = self.listening.accept()
                broker = socket.create_connection((parts.hostname or "", parts.port or 5672))
                self.sockets += [client, broker]
                for source, target, counted in ((client, broker, True), (broker, client, False)):
                    threading.Thread(
                        target=self._relay, args=(source, target, counted), daemon=True
                    ).start()

    def _relay(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        with suppress(OSError):
            while chunk := source.recv(4096):
                if self.muted.is_set():
                    continue
                if counted:
                    chunk = chunk[: self.left]
                    self.left -= len(chunk)
                target.sendall(chunk)
                if counted and self.left <= 0:
                    self.cut()
