"""A TCP relay to the broker of the tests, which can go away and come back as a broker does."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import parse_qs, urlsplit


class Relay:
    """Forwards connections to the broker; `url` is the broker's address through it."""

    def __init__(self, broker: str) -> None:
        self.broker = urlsplit(broker)
        self.port = 0
        self.sockets: list[socket.socket] = []
        self.come_back()

    @property
    def url(self) -> str:
        at = f"127.0.0.1:{self.port}"
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
                broker = self._connect()
                self.sockets += [client, broker]
                for pair in ((client, broker), (broker, client)):
                    threading.Thread(target=_pass_on, args=pair, daemon=True).start()

    def _connect(self) -> socket.socket:
        if self.broker.scheme == "redis+socket":
            broker = socket.socket(socket.AF_UNIX)
            broker.connect(f"{self.broker.netloc}{self.broker.path}")
            return broker
        port = self.broker.port or (6379 if self.broker.scheme == "redis" else 5672)
        return socket.create_connection((self.broker.hostname or "127.0.0.1", port))


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65_536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay(broker: str) -> Iterator[Relay]:
    running = Relay(broker)
    try:
        yield running
    finally:
        running.go_away()
