"""A web server for tests: sends the responses of a test and keeps the requests."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from django.db import connections


@dataclass(frozen=True)
class ReceivedRequest:
    """A request that the server received."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True)
class Response:
    """`cut`: send only so many bytes of the body, then close the connection."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None


Responder = Callable[[ReceivedRequest], Response]


class Server(ThreadingHTTPServer):
    """Listens on a free port of this machine; `respond` may be changed while it runs."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, respond: Responder) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.respond = respond
        self.requests: list[ReceivedRequest] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Close the database connections that a response has opened in this thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            connections.close_all()

    def handle_error(self, request: object, client_address: object) -> None:
        """Some tests disconnect on purpose."""


class Connection(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = ReceivedRequest(self.command, self.path, headers, self.rfile.read(length))
        self.server.requests.append(request)
        self._send(self.server.respond(request))

    do_POST = do_PUT = do_DELETE = do_GET

    def _send(self, answer: Response) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body[: answer.cut])
        if answer.cut is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Tests look at `requests`."""


@contextmanager
def serving(respond: Responder = lambda request: Response()) -> Iterator[Server]:
    """Serve until the block is left."""
    server = Server(respond)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        yield listening.getsockname()[1]


_closed: list[socket.socket] = []
"""Sockets that refuse connections as long as this process lives: nobody else gets their ports."""


def closed_port() -> int:
    """Return a port that refuses connections."""
    closed = socket.socket()
    _closed.append(closed)
    closed.bind(("127.0.0.1", 0))
    return int(closed.getsockname()[1])
