"""gunicorn's threaded worker, hardened against slow and against very many clients. The event loop
receives a whole request before a thread handles it, so a slow client occupies no thread. If too
many requests already wait, a request is refused at once, so that some connections are always left
for incoming requests. The health pages have their own threads, and the event loop itself answers
the liveness page.

Before a body above SMALL (`tailrace.web.bodies`) is received, a thread finds out who sends it. The
body of a stranger is not received."""

import math
import selectors
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from django.conf import settings
from gunicorn import util
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from tailrace.config.monitoring import liveness
from tailrace.config.monitoring.routes import route_of
from tailrace.config.servers.arrival import Arrival, ArrivedRequest, HeadTooLarge
from tailrace.config.servers.connection import (
    CHUNK,
    TOO_MANY,
    UNAVAILABLE,
    Connection,
    Lingering,
    Socket,
)
from tailrace.web.accounts.security.request import address_behind_proxies, network
from tailrace.web.bodies import LARGE_AT_ONCE, MAX_SPOOLED, SMALL, UNFINISHED_SMALL, BodyLimits

HEALTH_PATHS = (b"/healthz", b"/readyz")
HEALTH_THREADS = 2
WAITING_PER_THREAD = 16
"""Maximum number of requests per thread that wait or are being handled. In total, they may use at
most half of the connections."""
SWITCH_SECONDS = 0.0001
"""The interval after which Python switches from a busy thread to another one. With the default,
5 ms, the event loop would wait for all busy threads after each read or write."""
ACCEPTED_AT_ONCE = 16
CHECK_SECONDS = 0.1
"""Interval of the check for requests that did not arrive in time."""


class Threads(ThreadPoolExecutor):
    """Threads that handle requests. At most `most` requests wait or are being handled; `requests`
    counts them."""

    def __init__(self, count: int, most: int, name: str) -> None:
        super().__init__(count, name)
        self.most, self.requests = most, 0


class Worker(ThreadWorker):
    """Hands a request to a thread once it has arrived completely."""

    def init_process(self) -> None:
        self.addresses: dict[socket.socket, Any] = {}
        self.arrivals: dict[Connection, Arrival] = {}
        self.spooled = 0
        self.notified = self.checked = 0.0
        self.last_arrival = math.inf
        self.health_pool = Threads(HEALTH_THREADS, HEALTH_THREADS * WAITING_PER_THREAD, "health")
        sys.setswitchinterval(SWITCH_SECONDS)
        super().init_process()

    def load_wsgi(self) -> None:
        super().load_wsgi()
        from tailrace.config.servers.senders import Senders  # needs the apps, which are loaded now

        self.limits, self.senders = BodyLimits(), Senders(self.method_queue.defer)
        self.lingering = Lingering(self.poller)

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
            # Without these arguments, it would ask the kernel for them.
            sock = Socket(peer.family, peer.type, peer.proto, peer.detach())
            self.nr_conns += 1
            own = self.addresses.get(listener) or listener.getsockname()
            self.addresses[listener] = own
            self.enqueue_req(Connection(self.lingering, self.cfg, sock, address, own))
            self._make_room(self.worker_connections)

    def enqueue_req(self, conn: Connection) -> None:
        """Begin to receive the next request of a connection."""
        buffered = conn.parser.unreader.take_buffered()
        if conn.sock.gettimeout() != 0:
            conn.sock.setblocking(False)
        arrival = Arrival(self.limits, time.monotonic(), settings.WEB_READ_SECONDS)
        self.arrivals[conn] = arrival
        if buffered:
            self._receive(conn, buffered)
        self._on_data(conn)
        if conn in self.arrivals and not arrival.waits:
            self._listen(conn)

    # Without `listens`, the poller is searched for sockets that it does not have. The text of its
    # KeyError takes two system calls, and after each one the loop waits for the busy threads.

    def _listen(self, conn: Connection) -> None:
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self._on_data, conn))
        conn.listens = True

    def _stop_listening(self, conn: Connection) -> None:
        if conn.listens:
            self.poller.unregister(conn.sock)
            conn.listens = False

    def on_client_socket_readable(self, conn: Connection, client: socket.socket) -> None:
        """Begin to receive the next request of an idle connection."""
        if conn in self.keepalived_conns:  # it was not closed since the event
            super().on_client_socket_readable(conn, client)

    def _on_data(self, conn: Connection, _sock: socket.socket | None = None) -> None:
        arrival = self.arrivals.get(conn)
        if arrival is None or arrival.waits:  # completed or dropped since the event
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
        had_head, spooled = arrival.has_head, _spooled(arrival)
        try:
            arrival.add(data, time.monotonic())
        except HeadTooLarge:
            return self._refuse(conn, "431 Request Header Fields Too Large")
        except OSError:
            return self._refuse_unkept(conn)
        self.spooled += _spooled(arrival) - spooled
        if arrival.has_head and not had_head:
            if arrival.path == liveness.PATH.encode():
                return self._answer_liveness(conn, arrival)
            if arrival.is_too_long and not arrival.app_refuses:
                text = f"The body has {arrival.length} bytes, more than this address accepts."
                return self._refuse(conn, "413 Content Too Large", text)
            if arrival.waits:
                return self._look_up_sender(conn, arrival)
            if arrival.missing and not self._may_be_unfinished(conn, arrival):
                return
        self._go_on(conn, arrival, begins=not had_head)

    def _go_on(self, conn: Connection, arrival: Arrival, begins: bool) -> None:
        """Hand over the request if it is complete, else make sure that there is space for the rest;
        ask for the rest if the body `begins`."""
        if arrival.complete:
            return self._hand_over(conn)
        if begins and arrival.missing and arrival.expects_continue:
            self._send(conn, b"HTTP/1.1 100 Continue\r\n\r\n")
        while self.spooled > MAX_SPOOLED:
            self._refuse(self._heaviest(), UNAVAILABLE)

    def _heaviest(self) -> Connection:
        """Return the connection with the most bytes of the user with the most bytes, so that nobody
        can use up the space of others."""
        by_user: Counter[int | None] = Counter()
        for arrival in self.arrivals.values():
            by_user[arrival.user] += _spooled(arrival)
        [(user, _bytes)] = by_user.most_common(1)
        own = [conn for conn, arrival in self.arrivals.items() if arrival.user == user]
        return max(own, key=lambda conn: _spooled(self.arrivals[conn]))

    def _may_be_unfinished(self, conn: Connection, arrival: Arrival) -> bool:
        """Refuse the oldest incomplete small body of this client's network if it sends too many.
        Return whether this one is still received."""
        arrival.network = self._network(conn, arrival)
        same = [
            each
            for each, other in self.arrivals.items()
            if other.network == arrival.network and other.user is None and other.missing
        ]
        if len(same) > UNFINISHED_SMALL:
            self._refuse(same[0], TOO_MANY)
        return conn in self.arrivals

    def _network(self, conn: Connection, arrival: Arrival) -> str:
        peer = conn.client[0] if isinstance(conn.client, tuple) else ""
        return network(address_behind_proxies(peer, arrival.field(b"x-forwarded-for")))

    # A body above SMALL is received once a thread has found out who sends it.

    def _look_up_sender(self, conn: Connection, arrival: Arrival) -> None:
        """Let a thread look up the sender of a body; meanwhile, nothing is received."""
        self._stop_listening(conn)
        headers = arrival.field(b"authorization"), arrival.field(b"cookie")
        then = partial(self._on_sender, conn, arrival)
        self.senders.look_up(*headers, self._network(conn, arrival), then)

    def _on_sender(self, conn: Connection, arrival: Arrival, user: int | None, status: str) -> None:
        if self.arrivals.get(conn) is not arrival:  # dropped meanwhile
            return
        if status:
            return self._refuse(conn, status)
        if user is None:
            return self._decline(conn, arrival)
        if arrival.is_large and (status := self._status_without_place(user)):
            return self._refuse(conn, status)
        try:
            arrival.admit(user, time.monotonic())
        except OSError:
            return self._refuse_unkept(conn)
        self.spooled += _spooled(arrival)
        self._listen(conn)
        self._go_on(conn, arrival, begins=True)

    def _status_without_place(self, user: int) -> str:
        """Return the status of the answer if the user gets no place for a large body, else ""."""
        users = [each.user for each in self.arrivals.values() if each.user and each.is_large]
        if user in users:
            return TOO_MANY
        return UNAVAILABLE if len(users) >= LARGE_AT_ONCE else ""

    def _decline(self, conn: Connection, arrival: Arrival) -> None:
        """Do not receive the body of a stranger: let the app answer by the head if it can."""
        arrival.decline()
        if arrival.app_refuses:
            return self._hand_over(conn)
        text = f"Sign in to send more than {SMALL // 1024} KiB."
        self._refuse(conn, "413 Content Too Large", text)

    def _hand_over(self, conn: Connection) -> None:
        """Let a thread handle the received request, or refuse it if too many requests wait."""
        is_health = self.arrivals[conn].path.startswith(HEALTH_PATHS)
        threads: Threads = self.health_pool if is_health else self.tpool
        if threads.requests >= threads.most:
            return self._refuse(conn, UNAVAILABLE)
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
        reader = conn.parser.unreader
        # A body that was not received cannot be drained, as `super` does.
        keeps = not reader.starved and super()._keepalive_after(conn, keepalive)
        if keeps := keeps and not reader.starved:
            reader.unread(reader.arrival.excess)
        return keeps

    def handle_request(self, req: Any, conn: Connection) -> Any:
        """Handle a request, in a thread. A client that waited for 100 Continue has its answer."""
        req._expected_100_continue = False
        return super().handle_request(req, conn)

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
        if not self.alive:  # during shutdown, requests that arrive soon are still answered
            self.last_arrival = min(self.last_arrival, now + STOP_KEEPALIVE_LINGER)
        for conn, arrival in list(self.arrivals.items()):
            late = min(arrival.until, self.last_arrival) <= now
            if late or not (self.alive or arrival.head):
                status = UNAVAILABLE if arrival.waits else "408 Request Timeout"
                self._refuse(conn, status if arrival.head else "")
        self.lingering.end_late(now)

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

    def _refuse_unkept(self, conn: Connection) -> None:
        self.log.exception("A request cannot be kept in %s", "the folder of temporary files")
        self._refuse(conn, UNAVAILABLE)

    def _refuse(self, conn: Connection, status: str, text: str = "") -> None:
        arrival = self._forget(conn)
        self.nr_conns -= 1
        if status:
            retry = "Retry-After: 1\r\n" if status in (UNAVAILABLE, TOO_MANY) else ""
            kind = "Content-Type: text/plain; charset=utf-8\r\n" if text else ""
            head = (
                f"HTTP/1.1 {status}\r\n{retry}{kind}Content-Length: {len(text)}\r\n"
                "Connection: close\r\n\r\n"
            )
            self._send(conn, (head + text).encode())
        if status and (arrival.cut or not arrival.complete):
            self.lingering.add(conn)
        else:
            util.close(conn.sock)

    def _send(self, conn: Connection, data: bytes) -> None:
        """Send a few bytes; they are lost if the socket would block."""
        with suppress(OSError):
            conn.sock.send(data)

    def _make_room(self, most: int) -> None:
        """Close connections until there are fewer than `most`: first the idle ones, then the oldest
        incomplete ones, signed-in users' last. Pending bytes are read before, since they
        may complete a request."""
        if self.nr_conns < most:
            return
        for conn in self._least_needed():
            if conn in self.arrivals:
                self._on_data(conn)
            elif conn in self.keepalived_conns:
                self.on_client_socket_readable(conn, conn.sock)
            if conn in self.arrivals:
                self._drop(conn)
            if self.nr_conns < most:
                return

    def _least_needed(self) -> Iterator[Connection]:
        yield from [*self.keepalived_conns]
        yield from [conn for conn, arrival in self.arrivals.items() if arrival.user is None]
        yield from [*self.arrivals]

    def _drop(self, conn: Connection) -> None:
        self._forget(conn)
        self.nr_conns -= 1
        util.close(conn.sock)

    def _forget(self, conn: Connection) -> Arrival:
        """Stop receiving a request; return the part that has arrived."""
        self._stop_listening(conn)
        arrival = self.arrivals.pop(conn)
        self.spooled -= _spooled(arrival)
        return arrival

    def handle_quit(self, sig: int, frame: Any) -> None:
        self.health_pool.shutdown(wait=False)
        self.senders.shutdown(wait=False)
        super().handle_quit(sig, frame)


def _spooled(arrival: Arrival) -> int:
    """Return the bytes that count towards MAX_SPOOLED."""
    return 0 if arrival.is_large or arrival.user is None else arrival.arrived
