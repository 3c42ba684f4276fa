"""A web server for tests: answers as it is told, and remembers who asked for what."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What is sent back. `cut`: only so many bytes of the body, then the connection is closed."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None


Responder = Callable[[Asked], Answer]


class Server(ThreadingHTTPServer):
    """Listens on a free port of this machine; `respond` may be changed while it runs."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, respond: Responder) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.respond = respond
        self.asked: list[Asked] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is what some tests are about."""


class Connection(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers, self.rfile.read(length))
        self.server.asked.append(asked)
        self._send(self.server.respond(asked))

    do_POST = do_PUT = do_DELETE = do_GET

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body[: answer.cut])
        if answer.cut is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Tests look at `asked`."""


@contextmanager
def serving(respond: Responder = lambda asked: Answer()) -> Iterator[Server]:
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
    """A port that takes connections and never says a word."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(50)
        yield listening.getsockname()[1]


def closed_port() -> int:
    """Return a port on which nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])
