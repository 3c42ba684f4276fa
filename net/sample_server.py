"""An HTTP server on 127.0.0.1 that responds by a function, for sample sources and tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    """Headers by lower-case name."""
    body: bytes


@dataclass(frozen=True)
class Response:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    """Send only this many bytes of the body; None: the whole body."""


class SampleServer(ThreadingHTTPServer):
    """Listens on a port of 127.0.0.1 and calls `respond` for each request."""

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
        response = self.server.respond(Request(self.command, self.path, headers, body))
        self.send_response(response.status)
        self.send_header("Content-Length", str(len(response.body)))
        for name, value in response.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(response.body[: response.cut])

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the platform logs its own requests."""
