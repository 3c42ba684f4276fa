"""An HTTP server of this machine that answers by a function, for sample sources and tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol


class Request(Protocol):
    """What a client sends."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]:
        """By names in lower case."""

    @property
    def body(self) -> bytes: ...


@dataclass(frozen=True)
class Response:
    """`cut`: send only so many bytes of the body, then close the connection; None: all of it."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None


@dataclass(frozen=True)
class _Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class SampleServer(ThreadingHTTPServer):
    """Listens on a port of this machine."""

    daemon_threads = True

    def __init__(self, port: int, respond: Callable[[Request], Response]) -> None:
        super().__init__(("127.0.0.1", port), _Connection)
        self.respond = respond


class _Connection(BaseHTTPRequestHandler):
    server: SampleServer
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.respond(_Received(self.command, self.path, headers, body))
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.body[: answer.cut])

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """The platform logs what it asks."""
