"""The web server as it is deployed: gunicorn with the project's settings, in its own process."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests import forks
from tests.kit import PATIENCE, ROOT, wait_until
from tests.servers.platform import free_ports


class WebServer:
    """A running web server; `url` is where."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self.port, self.process, self.log = port, process, log
        self.url = f"http://127.0.0.1:{port}"

    def connect(self, data: bytes = b"") -> socket.socket:
        """Return a connection that has sent `data`."""
        peer = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        peer.sendall(data)
        return peer

    def exchange(self, data: bytes) -> bytes:
        """Send `data`; return all that comes until the server closes the connection."""
        with self.connect(data) as peer:
            return read_to_end(peer)

    def answers(self, path: str) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        try:
            return httpx.get(self.url + path, timeout=PATIENCE).status_code == 200
        except httpx.TransportError:
            return False


def read_to_end(peer: socket.socket) -> bytes:
    """Return what comes until the other side closes."""
    received = b""
    while data := peer.recv(65536):
        received += data
    return received


@contextmanager
def web_server(
    folder: Path, *command: str, app: str = "tailrace.config.servers.wsgi", **variables: str
) -> Iterator[WebServer]:
    """Serve until the block is left. `command`: another server; {port} is its port."""
    (port,), log = free_ports(1), folder / "web.log"
    words = command or ("gunicorn", "--config", "config/servers/gunicorn.py", app)
    with log.open("wb") as output:
        process = forks.Fork(
            ["-m", *(word.format(port=port) for word in words)],
            cwd=ROOT,
            env={**os.environ, "WEB_PORT": str(port), "LOG_FORMAT": "json", **variables},
            stdout=output,
            stderr=output,
        )
    server = WebServer(port, process, log)
    try:
        wait_until(lambda: server.answers("/healthz/live"), what="the web server starts")
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE)
