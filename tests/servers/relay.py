"""A TCP relay to the broker or the database of the tests. It can go away and come back as a server
does, and be as slow as a long way to the server."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.db import connections


class Relay:
    """Forwards connections to the server, `delay` seconds late in both directions; `url` is the
    server's address through it."""

    def __init__(self, server: str, delay: float = 0.0) -> None:
        self.broker, self.delay = urlsplit(server), delay
        self.port = 0
        self.sockets: list[socket.socket] = []
        self.come_back()

    @property
    def url(self) -> str:
        at = f"127.0.0.1:{self.port}"
        if self.broker.scheme == "postgres":
            user = self.broker.netloc.rpartition("@")[0] or "postgres"
            return f"postgres://{user}@{at}{self.broker.path}?sslmode=disable"
        if self.broker.scheme == "redis+socket":
            return f"redis://{at}/{parse_qs(self.broker.query)['virtual_host'][0]}"
        user, _, _ = self.broker.netloc.rpartition("@")
        return self.broker._replace(netloc=f"{user}@{at}" if user else at).geturl()

    def come_back(self) -> None:
        self.listening = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listening.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listening,), daemon=True).start()

    def go_away(self) -> None:
        """Refuse new connections and cut those there are."""
        for sock in (self.listening, *self.sockets):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        self.sockets.clear()

    def _accept(self, listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _address = listening.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                broker = self._connect()
                self.sockets += [client, broker]
                for pair in ((client, broker), (broker, client)):
                    _start(_pass_on, *pair, self.delay)

    def _connect(self) -> socket.socket:
        if self.broker.scheme == "postgres":
            return self._connect_to_database()
        if self.broker.scheme == "redis+socket":
            broker = socket.socket(socket.AF_UNIX)
            broker.connect(f"{self.broker.netloc}{self.broker.path}")
            return broker
        port = self.broker.port or (6379 if self.broker.scheme == "redis" else 5672)
        return socket.create_connection((self.broker.hostname or "127.0.0.1", port))

    def _connect_to_database(self) -> socket.socket:
        options = parse_qs(self.broker.query)
        host = self.broker.hostname or options.get("host", ["127.0.0.1"])[0]
        port = self.broker.port or int(options.get("port", ["5432"])[0])
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        database = socket.socket(socket.AF_UNIX)
        database.connect(f"{host}/.s.PGSQL.{port}")
        return database


def _start(work: Callable[..., None], *args: Any) -> None:
    threading.Thread(target=work, args=args, daemon=True).start()


def _pass_on(source: socket.socket, target: socket.socket, delay: float) -> None:
    """Forward what comes, and then the end. The packets are on their way at the same time."""
    packets: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
    _start(_arrive, packets, target)
    with suppress(OSError):
        while chunk := source.recv(65_536):
            packets.put((time.monotonic() + delay, chunk))
    packets.put((time.monotonic() + delay, b""))


def _arrive(packets: SimpleQueue[tuple[float, bytes]], target: socket.socket) -> None:
    with suppress(OSError):
        while True:
            at, chunk = packets.get()
            time.sleep(max(at - time.monotonic(), 0))
            if not chunk:
                return target.shutdown(socket.SHUT_RDWR)
            target.sendall(chunk)


@contextmanager
def relay(server: str, delay: float = 0.0) -> Iterator[Relay]:
    running = Relay(server, delay)
    try:
        yield running
    finally:
        running.go_away()


HERE = ("host", "port", "options")
"""Options of a database connection that another way to the server does not take."""


@contextmanager
def through(port: int, **more: str) -> Iterator[None]:
    """Let all database connections of this process, in every thread, lead to this local port;
    `more`: other values of the settings."""
    saved = {alias: dict(database) for alias, database in connections.settings.items()}
    connections.close_all()
    for database in connections.settings.values():
        options = {k: v for k, v in database["OPTIONS"].items() if k not in HERE}
        database |= {"HOST": "127.0.0.1", "PORT": port, "OPTIONS": options, **more}
    try:
        yield
    finally:
        connections.close_all()
        for alias, database in connections.settings.items():
            database.clear()
            database.update(saved[alias])
