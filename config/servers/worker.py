"""gunicorn's threaded worker, for clients that are slow or many on purpose.

The event loop receives each request whole before it takes one of the threads: whoever sends half
of a request, or one byte each second, holds a connection and nothing else. Requests that find too
many others before them are refused at once. So of all connections, a part is always left for
requests on their way in. The health page has threads of its own, and the loop itself answers
whether the process lives.
"""

import selectors
import socket
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from django.conf import settings
from gunicorn import util
from gunicorn.http import get_parser
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, TConn, ThreadWorker

from tailrace.config.monitoring import liveness
from tailrace.config.monitoring.routes import route_of
from tailrace.config.servers.arrival import IN_MEMORY, Arrival, ArrivedRequest, HeadTooLarge

HEALTH_PATHS = (b"/healthz", b"/readyz")
HEALTH_THREADS = 2
WAITING_PER_THREAD = 16
"""Requests that wait for the threads or are handled: so many for each of them, at most; and not
more than half of the connections."""
SWITCH_SECONDS = 0.0001
"""After which a thread that computes lets another one run. With Python's own value, 5 ms, the event
loop waits for each of the busy threads whenever it has read or written a few bytes."""
ACCEPTED_AT_ONCE = 16
CHUNK = 64 * 1024
WRITE_SECONDS = 30.0
"""Within which a client must take each part of an answer."""
CHECK_SECONDS = 0.1
"""Between two looks for requests that did not arrive in time."""
LINGER_SECONDS = 2.0
MAX_LINGERING = 100
MAX_SPOOLED = 512 * 1024 * 1024
"""Bytes of big bodies that are on their way in."""
FORM_BYTES = 1024 * 1024
"""What a form may hold beside the file that it uploads."""
LARGE_AT = (b"/api/imports", b"/timeline/imports")
"""Where whole location histories are sent."""
MAX_LARGE = 2
"""Such bodies that are on their way in at once; nobody else waits for their place or their time."""


class Socket(socket.socket):
    """A socket that never blocks for longer than WRITE_SECONDS."""

    def setblocking(self, flag: bool) -> None:
        self.settimeout(WRITE_SECONDS if flag else 0)


class Threads(ThreadPoolExecutor):
    """Threads that handle requests. `most`: the requests that may wait or be handled; `requests`:
    those that do."""

    def __init__(self, count: int, most: int, name: str) -> None:
        super().__init__(count, name)
        self.most, self.requests = most, 0


class Connection(TConn):
    """A client's connection, which is closed without waiting for the client."""

    def __init__(self, worker: "Worker", *args: Any) -> None:
        super().__init__(*args)
        self.worker = worker
        self.initialized = True
        self.parser = get_parser(self.cfg, self.sock, self.client)

    def close(self, graceful: bool = False) -> None:
        """Close it; `graceful`: once the client has read the answer to what it still sends."""
        if graceful and getattr(self.parser.unreader, "starved", False):
            self.worker.linger(self)
        else:
            util.close(self.sock)


class Worker(ThreadWorker):
    """Gives a request to a thread once it has arrived."""

    def init_process(self) -> None:
        self.addresses: dict[socket.socket, Any] = {}
        self.arrivals: dict[Connection, Arrival] = {}
        self.lingering: dict[Connection, float] = {}
        self.spooled = 0
        self.notified = self.checked = 0.0
        self.max_body = FORM_BYTES + max(
            settings.DATA_UPLOAD_MAX_MEMORY_SIZE, settings.PHOTOS_MAX_MEGABYTES * 1_000_000
        )
        self.max_large_body = FORM_BYTES + settings.IMPORT_MAX_MEGABYTES * 1_000_000
        self.large = 0
        self.health_pool = Threads(HEALTH_THREADS, HEALTH_THREADS * WAITING_PER_THREAD, "health")
        sys.setswitchinterval(SWITCH_SECONDS)
        super().init_process()

    def get_thread_pool(self) -> Threads:
        """Return the threads for everything but the health page."""
        count = self.cfg.threads
        most = min(count * WAITING_PER_THREAD, self.worker_connections // 2)
        return Threads(count, most, "web")

    def notify(self) -> None:
        """Show that the process lives; the loop calls this again and again, once a second is
        enough."""
        if (now := time.monotonic()) - self.notified >= 1:
            self.notified = now
            super().notify()

    def accept(self, listener: socket.socket) -> None:
        """Accept the connections that wait, some at once. When there are too many, those go that
        have been idle or unfinished for longest."""
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                peer, address = listener.accept()
            except BlockingIOError:
                return
            except OSError:  # it has gone, or no file is free
                self._make_room(self.nr_conns)
                return
            sock = Socket(fileno=peer.detach())
            self.nr_conns += 1
            own = self.addresses.get(listener) or listener.getsockname()
            self.addresses[listener] = own
            self.enqueue_req(Connection(self, self.cfg, sock, address, own))
            self._make_room(self.worker_connections)

    def enqueue_req(self, conn: Connection) -> None:
        """Begin to receive the next request of a connection."""
        early = conn.parser.unreader.take_buffered()
        if conn.sock.gettimeout() != 0:
            conn.sock.setblocking(False)
        until = time.monotonic() + settings.WEB_READ_SECONDS
        self.arrivals[conn] = Arrival(until, self.max_body, self.max_large_body, LARGE_AT)
        if early:
            self._receive(conn, early)
        self._on_data(conn)
        if conn in self.arrivals:
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_data, conn))

    def on_client_socket_readable(self, conn: Connection, client: socket.socket) -> None:
        """Begin to receive the next request of an idle connection."""
        if conn in self.keepalived_conns:  # not closed a moment ago
            super().on_client_socket_readable(conn, client)

    def _on_data(self, conn: Connection, _sock: socket.socket | None = None) -> None:
        """Read what the client has sent until now."""
        if conn not in self.arrivals:  # complete or dropped a moment ago
            return
        try:
            data = conn.sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._receive(conn, data)
        else:
            self._drop(conn)

    def _receive(self, conn: Connection, data: bytes) -> None:
        arrival = self.arrivals[conn]
        had_head = arrival.has_head
        try:
            arrival.add(data)
        except HeadTooLarge:
            return self._refuse(conn, "431 Request Header Fields Too Large")
        except OSError:
            self.log.exception("A request cannot be kept in %s", "the folder of temporary files")
            return self._refuse(conn, "503 Service Unavailable")
        if arrival.has_head and not had_head:
            self._count(arrival, 1)
            if arrival.path == liveness.PATH.encode():
                return self._answer_liveness(conn, arrival)
            full = self.large > MAX_LARGE if arrival.is_large else self.spooled > MAX_SPOOLED
            if full and arrival.length > IN_MEMORY:
                return self._refuse(conn, "503 Service Unavailable")
            if arrival.expects_continue and arrival.missing:
                self._send(conn, b"HTTP/1.1 100 Continue\r\n\r\n")
        if arrival.complete:
            self._hand_over(conn)

    def _hand_over(self, conn: Connection) -> None:
        """Let a thread handle the request that has arrived; refuse it if too many others wait."""
        is_health = self.arrivals[conn].path.startswith(HEALTH_PATHS)
        threads: Threads = self.health_pool if is_health else self.tpool
        if threads.requests >= threads.most:
            return self._refuse(conn, "503 Service Unavailable")
        conn.parser.unreader = ArrivedRequest(self._forget(conn))
        threads.requests += 1
        future = threads.submit(self.handle, conn)
        future.add_done_callback(
            lambda done: self.method_queue.defer(self._finish, conn, done, threads)
        )

    def _finish(self, conn: Connection, done: Future[Any], threads: Threads) -> None:
        threads.requests -= 1
        self.finish_request(conn, done)

    def _keepalive_after(self, conn: Connection, keepalive: bool) -> bool:
        """Whether the connection is kept; called by the thread."""
        kept = super()._keepalive_after(conn, keepalive) and not conn.parser.unreader.starved
        if kept:
            conn.parser.unreader.unread(conn.parser.unreader.arrival.excess)
        return kept

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer a request that gunicorn itself refuses, or whose handling failed outside of
        Django; log its route."""
        if req is not None:
            req.uri = route_of(req.path)
        super().handle_error(req, client, addr, exc)

    def murder_pending(self) -> None:
        """Refuse what did not arrive in time; the loop calls this each second, at least."""
        super().murder_pending()
        if (now := time.monotonic()) - self.checked < CHECK_SECONDS:
            return
        self.checked = now
        for conn, arrival in list(self.arrivals.items()):
            if not self.alive:  # what is about to arrive is still answered
                arrival.until = min(arrival.until, now + STOP_KEEPALIVE_LINGER)
            if arrival.until <= now or not (self.alive or arrival.head):
                self._refuse(conn, "408 Request Timeout" if arrival.head else "")
        for conn, until in list(self.lingering.items()):
            if until <= now:
                self._end_lingering(conn)

    def _answer_liveness(self, conn: Connection, arrival: Arrival) -> None:
        allowed = arrival.method in (b"GET", b"HEAD")
        body = liveness.BODY if allowed and arrival.method == b"GET" else b""
        length = len(liveness.BODY) if allowed else 0
        head = (
            f"HTTP/1.1 {'200 OK' if allowed else '405 Method Not Allowed'}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\n"
            "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        self._send(conn, head.encode() + body)
        self._drop(conn)

    def _refuse(self, conn: Connection, status: str) -> None:
        """Answer a request that no thread gets, and close the connection."""
        arrival = self._forget(conn)
        self.nr_conns -= 1
        if status:
            retry = "Retry-After: 1\r\n" if status.startswith("503") else ""
            head = f"HTTP/1.1 {status}\r\n{retry}Content-Length: 0\r\nConnection: close\r\n\r\n"
            self._send(conn, head.encode())
        if status and (arrival.cut or not arrival.complete):
            self.linger(conn)
        else:
            util.close(conn.sock)

    def _send(self, conn: Connection, data: bytes) -> None:
        """Send a few bytes if the client takes them now."""
        with suppress(OSError):
            conn.sock.send(data)

    def _make_room(self, most: int) -> None:
        """Close connections until there are less than `most`: the idle ones, then those that are
        unfinished for longest. What a client has sent is read before, as it may complete a
        request."""
        for conn in [*self.keepalived_conns, *self.arrivals]:
            if self.nr_conns < most:
                return
            if conn in self.arrivals:
                self._on_data(conn)
            else:
                self.on_client_socket_readable(conn, conn.sock)
            if conn in self.arrivals:
                self._drop(conn)

    def _drop(self, conn: Connection) -> None:
        self._forget(conn)
        self.nr_conns -= 1
        util.close(conn.sock)

    def _forget(self, conn: Connection) -> Arrival:
        """Stop receiving; return what has arrived."""
        if conn.sock in self.poller.get_map():
            self.poller.unregister(conn.sock)
        arrival = self.arrivals.pop(conn)
        if arrival.has_head:
            self._count(arrival, -1)
        return arrival

    def _count(self, arrival: Arrival, sign: int) -> None:
        """Count a body that is on its way in, or is so no longer."""
        if arrival.is_large:
            self.large += sign
        else:
            self.spooled += sign * arrival.length

    # A connection that is closed while the client still sends is reset, and the client may lose
    # the answer. So what it sends is read and thrown away for a moment.

    def linger(self, conn: Connection) -> None:
        """Close a connection once its client has stopped sending, soon in any case."""
        if len(self.lingering) >= MAX_LINGERING:
            self._end_lingering(next(iter(self.lingering)))
        try:
            conn.sock.setblocking(False)
            conn.sock.shutdown(socket.SHUT_WR)
        except OSError:
            util.close(conn.sock)
            return
        self.lingering[conn] = time.monotonic() + LINGER_SECONDS
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._discard, conn))

    def _discard(self, conn: Connection, _sock: socket.socket) -> None:
        if conn not in self.lingering:  # ended a moment ago
            return
        with suppress(BlockingIOError):
            try:
                ended = not conn.sock.recv(CHUNK)
            except OSError:
                ended = True
            if ended:
                self._end_lingering(conn)

    def _end_lingering(self, conn: Connection) -> None:
        del self.lingering[conn]
        self.poller.unregister(conn.sock)
        util.close(conn.sock)

    def handle_quit(self, sig: int, frame: Any) -> None:
        self.health_pool.shutdown(wait=False)
        super().handle_quit(sig, frame)
