"""A server that greets as a PostgreSQL of another version, and answers nothing else."""

import socketserver
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_SSL, _GSS = 80877103, 80877104


class _Session(socketserver.BaseRequestHandler):
    server: "_Server"

    def handle(self) -> None:
        while True:
            head = self.request.recv(8, 8)
            if len(head) < 8:
                return
            length, code = struct.unpack("!ii", head)
            if code not in (_SSL, _GSS):
                break
            self.request.sendall(b"N")
        self.request.recv(length - 8)
        self.request.sendall(
            _message(b"R", struct.pack("!i", 0))
            + _parameter("server_version", self.server.version)
            + _parameter("server_encoding", "UTF8")
            + _parameter("client_encoding", "UTF8")
            + _parameter("TimeZone", "UTC")
            + _parameter("standard_conforming_strings", "on")
            + _message(b"K", struct.pack("!ii", 1, 1))
            + _message(b"Z", b"I")
        )
        self.request.recv(1000)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = allow_reuse_address = True
    version = ""


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _parameter(name: str, value: str) -> bytes:
    return _message(b"S", f"{name}\0{value}\0".encode())


@contextmanager
def old_postgres(version: str, port: int = 0) -> Iterator[int]:
    """Serve until the block is left; give the port."""
    with _Server(("127.0.0.1", port), _Session) as server:
        server.version = version
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()
