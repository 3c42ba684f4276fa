"""Connections of clients to a web process, how they are closed, and the status lines of requests
that are refused with Retry-After."""

import selectors
import socket
import time
from contextlib import suppress
from functools import partial
from typing import Any

from gunicorn import util
from gunicorn.http import get_parser
from gunicorn.workers.gthread import TConn

UNAVAILABLE = "503 Service Unavailable"
TOO_MANY = "429 Too Many Requests"
CHUNK = 64 * 1024
"""Bytes that are read at once."""
WRITE_SECONDS = 30.0
"""Time limit for a client to accept a part of the response."""
LINGER_SECONDS = 2.0
MAX_LINGERING = 100


class Socket(socket.socket):
    """A socket that never blocks for longer than WRITE_SECONDS."""

    def setblocking(self, flag: bool) -> None:
        self.settimeout(WRITE_SECONDS if flag else 0)


class Connection(TConn):
    """A client's connection. Closing it does not block."""

    def __init__(self, lingering: "Lingering", *args: Any) -> None:
        super().__init__(*args)
        self.lingering = lingering
        self.listens = False
        """Whether the event loop waits for more of a request."""
        self.initialized = True
        self.parser = get_parser(self.cfg, self.sock, self.client)

    def close(self, graceful: bool = False) -> None:
        """Close the connection; with `graceful`, let the client first read the response if it is
        still sending its request."""
        if graceful and getattr(self.parser.unreader, "starved", False):
            self.lingering.add(self)
        else:
            util.close(self.sock)


class Lingering:
    """Connections that are closed while their clients still send. If such a connection was closed
    at once, it would be reset, and the client might lose the response. So the event loop reads and
    discards the bytes of these clients for a short time."""

    def __init__(self, poller: selectors.BaseSelector) -> None:
        self._poller = poller
        self._until: dict[Connection, float] = {}

    def add(self, conn: Connection) -> None:
        """Close a connection once its client stops sending, after LINGER_SECONDS at the latest."""
        if len(self._until) >= MAX_LINGERING:
            self._end(next(iter(self._until)))
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            util.close(conn.sock)
            return
        self._until[conn] = time.monotonic() + LINGER_SECONDS
        self._poller.register(conn.sock, selectors.EVENT_READ, partial(self._discard, conn))

    def end_late(self, now: float) -> None:
        """Close the connections whose time is over, by time.monotonic()."""
        for conn, until in list(self._until.items()):
            if until <= now:
                self._end(conn)

    def _discard(self, conn: Connection, _sock: socket.socket) -> None:
        if conn not in self._until:  # ended since the event
            return
        with suppress(BlockingIOError):
            try:
                ended = not conn.sock.recv(CHUNK)
            except OSError:
                ended = True
            if ended:
                self._end(conn)

    def _end(self, conn: Connection) -> None:
        del self._until[conn]
        self._poller.unregister(conn.sock)
        util.close(conn.sock)
