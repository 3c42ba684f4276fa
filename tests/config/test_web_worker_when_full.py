"""The web server's worker when all its connections are taken: who is answered, and who goes."""

import http.client
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial

import httpx
import psutil
import pytest

from tests.kit import PATIENCE, wait_until
from tests.servers.gunicorn import WebServer, read_to_end, web_server

pytestmark = pytest.mark.once

CONNECTIONS, THREADS = 40, 2
WAITING = 20
"""Requests that wait for the threads or are handled: half of the connections."""
WAITING_FOR_HEALTH = 32
HOST = b"Host: 127.0.0.1\r\n"
ORDINARY = b"GET /ordinary HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A web server with few connections, whose idle connections stay."""
    options = f"--worker-connections={CONNECTIONS} --threads={THREADS} --keep-alive=600"
    with web_server(
        tmp_path_factory.mktemp("web"), app="tests.servers.echo:application",
        WEB_READ_SECONDS="600", GUNICORN_CMD_ARGS=options,
    ) as server:  # fmt: skip
        yield server


@pytest.fixture
def peers(server: WebServer) -> Iterator[ExitStack]:
    """Closes the connections that it has got, and then answers what is held."""
    httpx.get(f"{server.url}/healthz/hold", timeout=PATIENCE)
    # What the worker has not seen closed yet counts, and would make it close one of the test's.
    wait_until(lambda: accepted(server) == 0)
    with ExitStack() as stack:
        yield stack
    for path in ("/release", "/healthz/release"):
        wait_until(partial(server.answers, path))


def connected(peers: ExitStack, server: WebServer, count: int, data: bytes) -> list[socket.socket]:
    """Connections, one after the other, that have sent `data`."""
    return [peers.enter_context(closing(server.connect(data))) for _ in range(count)]


def worker_of(server: WebServer) -> psutil.Process:
    [worker] = psutil.Process(server.process.pid).children()
    return worker


def accepted(server: WebServer) -> int:
    """Connections of clients that the worker has."""
    connections = worker_of(server).net_connections("tcp")
    return sum(each.laddr.port == server.port and bool(each.raddr) for each in connections)


@contextmanager
def stopped(server: WebServer) -> Iterator[None]:
    """The worker sees at once what happens in the block."""
    worker = worker_of(server)
    worker.send_signal(signal.SIGSTOP)
    wait_until(lambda: worker.status() == psutil.STATUS_STOPPED)
    yield
    worker.send_signal(signal.SIGCONT)


def assert_serves(server: WebServer) -> None:
    """Everybody who sends a request at once gets an answer, however many others are connected."""
    for path in ("/healthz/live", "/healthz") * 5:
        assert httpx.get(server.url + path, timeout=PATIENCE).status_code == 200, path


def statuses(waiting: list[socket.socket]) -> list[int]:
    """The statuses of their answers, which are read whole."""
    return [_status(peer) for peer in waiting]


def _status(peer: socket.socket) -> int:
    answer = http.client.HTTPResponse(peer)
    answer.begin()
    answer.read()
    return answer.status


def test_requests_behind_too_many_others_are_refused_at_once_and_the_health_page_is_not(
    server: WebServer, peers: ExitStack
) -> None:
    held = b"GET /held HTTP/1.1\r\n" + HOST + b"\r\n"
    waiting = connected(peers, server, 2 * CONNECTIONS, held)
    for peer in waiting[WAITING:]:
        answer = read_to_end(peer)
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n")
    assert server.exchange(ORDINARY).startswith(b"HTTP/1.1 503 ")
    connected(peers, server, 2 * CONNECTIONS, b"")
    assert_serves(server)
    assert httpx.get(f"{server.url}/healthz/release").status_code == 200
    assert statuses(waiting[:WAITING]) == [200] * WAITING
    assert b" 200 OK" in server.exchange(ORDINARY)


def test_many_requests_for_the_health_page_leave_place_for_the_others(
    server: WebServer, peers: ExitStack
) -> None:
    held = b"GET /healthz/held HTTP/1.1\r\n" + HOST + b"\r\n"
    waiting = connected(peers, server, 2 * CONNECTIONS, held)
    assert statuses(waiting[WAITING_FOR_HEALTH:]) == [503] * (2 * CONNECTIONS - WAITING_FOR_HEALTH)
    assert b" 200 OK" in server.exchange(ORDINARY)


def test_idle_connections_make_room(server: WebServer, peers: ExitStack) -> None:
    for _ in range(3 * CONNECTIONS):
        idle = connected(peers, server, 1, ORDINARY.replace(b"close", b"keep-alive"))
        assert statuses(idle) == [200]
    assert_serves(server)
    assert b" 200 OK" in server.exchange(ORDINARY)


def test_a_request_that_has_arrived_is_read_before_its_connection_would_go(
    server: WebServer, peers: ExitStack
) -> None:
    [oldest] = connected(peers, server, 1, ORDINARY[:20])
    connected(peers, server, CONNECTIONS - 2, b"")
    wait_until(lambda: accepted(server) == CONNECTIONS - 1)
    with stopped(server):
        connected(peers, server, 1, b"")
        oldest.sendall(ORDINARY[20:])
    assert b" 200 OK" in read_to_end(oldest)


def test_a_next_request_that_has_arrived_is_read_before_its_idle_connection_would_go(
    server: WebServer, peers: ExitStack
) -> None:
    again = ORDINARY.replace(b"close", b"keep-alive")
    [idle] = connected(peers, server, 1, again)
    assert statuses([idle]) == [200]
    connected(peers, server, CONNECTIONS - 2, b"")
    wait_until(lambda: accepted(server) == CONNECTIONS - 1)
    with stopped(server):
        connected(peers, server, 1, b"")
        idle.sendall(again)
    assert statuses([idle]) == [200]


def test_connections_that_linger_are_closed_while_their_clients_still_send(
    server: WebServer, peers: ExitStack
) -> None:
    worker = worker_of(server)
    begin = b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"x" * 40_000
    lingering = connected(peers, server, 100, begin + b"x" * 30_000)
    assert statuses(lingering) == [431] * 100
    [last] = connected(peers, server, 1, begin)
    wait_until(lambda: accepted(server) == 101)
    with stopped(server):  # the last one is read first, which ends the lingering of the first one
        last.sendall(b"x" * 30_000)
        lingering[0].sendall(b"x")
    assert statuses([last]) == [431]
    assert_serves(server)
    assert worker_of(server) == worker, "it has ended, and another one has begun"
