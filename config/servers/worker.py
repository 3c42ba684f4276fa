"""gunicorn's threaded worker, hardened against slow and against very many clients. The event loop
receives a whole request before a thread handles it, so a slow client occupies no thread. If too
many requests already wait, a request is refused at once, so that some connections are always left
for incoming requests. The health pages have their own threads, and the event loop itself answers
the liveness page."""

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
"""Maximum number of requests per thread that wait or are being handled. In total, they may use at
most half of the connections."""
SWITCH_SECONDS = 0.0001
"""The interval after which Python switches from a busy thread to another one. With the default,
5 ms, the event loop would wait for all busy threads after each read or write."""
ACCEPTED_AT_ONCE = 16
CHUNK = 64 * 1024
WRITE_SECONDS = 30.0
"""Time limit for a client to accept a part of the response."""
CHECK_SECONDS = 0.1
"""Interval of the check for requests that did not arrive in time."""
LINGER_SECONDS = 2.0
MAX_LINGERING = 100
MAX_SPOOLED = 512 * 1024 * 1024
"""Maximum total length of the bodies that are arriving, without large ones."""
FORM_BYTES = 1024 * 1024
"""Maximum size of a form besides the uploaded file."""
LARGE_AT = (b"/api/imports", b"/timeline/imports")
"""Paths of uploads of location histories, whose bodies may be large."""
MAX_LARGE = 2
"""Maximum number of large bodies that arrive at once. They are limited separately, so that they do
not delay other requests."""


class Socket(socket.socket):
    """A socket that never blocks for longer than WRITE_SECONDS."""

    def setblocking(self, flag: bool) -> None:
        self.settimeout(WRITE_SECONDS if flag else 0)


class Threads(ThreadPoolExecutor):
    """Threads that handle requests. At most `most` requests wait or are being handled; `requests`
    counts them."""

    def __init__(self, count: int, most: int, name: str) -> None:
        super().__init__(count, name)
        self.most, self.requests = most, 0


class Connection(TConn):
    """A client's connection. Closing it does not block."""

    def __init__(self, worker: "Worker", *args: Any) -> None:
        super().__init__(*args)
        self.worker = worker
        self.initialized = True
        self.parser = get_parser(self.cfg, self.sock, self.client)

    def close(self, graceful: bool = False) -> None:
        """Close the connection; with `graceful`, let the client first read the response if it is
        still sending its request."""
        if graceful and getattr(self.parser.unreader, "starved", False):
            self.worker.linger(self)
        else:
            util.close(self.sock)


class Worker(ThreadWorker):
    """Hands a request to a thread once it has arrived completely."""

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
        """Return the threads for all requests except those for the health pages."""
        count = self.cfg.threads
        most = min(count * WAITING_PER_THREAD, self.worker_connections // 2)
        return Threads(count, most, "web")

    def notify(self) -> None:
        """Report that the process is alive, at most once a second."""
        if (now := time.monotonic()) - self.notified >= 1:
            self.notified = now
            super().notify()

    def accept(self, listener: socket.socket) -> None:
        """Accept up to ACCEPTED_AT_ONCE waiting connections. If there are too many connections,
        close the oldest idle and incomplete ones."""
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                peer, address = listener.accept()
            except BlockingIOError:
                return
            except OSError:  # the client disconnected, or no file descriptor is free
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
        buffered = conn.parser.unreader.take_buffered()
        if conn.sock.gettimeout() != 0:
            conn.sock.setblocking(False)
        until = time.monotonic() + settings.WEB_READ_SECONDS
        self.arrivals[conn] = Arrival(until, self.max_body, self.max_large_body, LARGE_AT)
        if buffered:
            self._receive(conn, buffered)
        self._on_data(conn)
        if conn in self.arrivals:
            self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_data, conn))

    def on_client_socket_readable(self, conn: Connection, client: socket.socket) -> None:
        """Begin to receive the next request of an idle connection."""
        if conn in self.keepalived_conns:  # it was not closed since the event
            super().on_client_socket_readable(conn, client)

    def _on_data(self, conn: Connection, _sock: socket.socket | None = None) -> None:
        if conn not in self.arrivals:  # completed or dropped since the event
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
        """Let a thread handle the received request, or refuse it if too many requests wait."""
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
        """Return whether to keep the connection open. Called in the thread."""
        keeps = super()._keepalive_after(conn, keepalive) and not conn.parser.unreader.starved
        if keeps:
            conn.parser.unreader.unread(conn.parser.unreader.arrival.excess)
        return keeps

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer a request that gunicorn refuses or that failed outside of Django. Its route is
        logged instead of its URL."""
        if req is not None:
            req.uri = route_of(req.path)
        super().handle_error(req, client, addr, exc)

    def murder_pending(self) -> None:
        """Refuse requests that did not arrive in time. The loop calls this at least each second."""
        super().murder_pending()
        if (now := time.monotonic()) - self.checked < CHECK_SECONDS:
            return
        self.checked = now
        for conn, arrival in list(self.arrivals.items()):
            if not self.alive:  # during shutdown, requests that arrive soon are still answered
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
        """Send a few bytes; they are lost if the socket would block."""
        with suppress(OSError):
            conn.sock.send(data)

    def _make_room(self, most: int) -> None:
        """Close connections until there are fewer than `most`: first the idle ones, then the oldest
        incomplete ones. Pending bytes are read before, since they may complete a request."""
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
        """Stop receiving a request; return the part that has arrived."""
        if conn.sock in self.poller.get_map():
            self.poller.unregister(conn.sock)
        arrival = self.arrivals.pop(conn)
        if arrival.has_head:
            self._count(arrival, -1)
        return arrival

    def _count(self, arrival: Arrival, sign: int) -> None:
        """Add a body to the arriving bodies (sign 1) or remove it (sign -1)."""
        if arrival.is_large:
            self.large += sign
        else:
            self.spooled += sign * arrival.length

    # If a connection is closed while the client still sends, it is reset, and the client may lose
    # the response. So the worker reads and discards the client's bytes for a short time.

    def linger(self, conn: Connection) -> None:
        """Close a connection once its client stops sending, after LINGER_SECONDS at the latest."""
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
        if conn not in self.lingering:  # ended since the event
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
