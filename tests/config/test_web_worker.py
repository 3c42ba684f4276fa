"""The web server's worker: what clients send arrives whole, however they send it."""

import hashlib
import json
import os
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from django.db import connection

from tailrace.config.servers.arrival import Arrival, ArrivedRequest
from tailrace.web.bodies import BodyLimits
from tests.addresses import address
from tests.kit import PATIENCE
from tests.servers.gunicorn import WebServer, web_server
from tests.subscriptions.sample_domain import person
from tests.web.program import make_token

pytestmark = [pytest.mark.once, pytest.mark.django_db]

HOST = b"Host: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, rows_of_module: None) -> Iterator[WebServer]:
    with web_server(
        tmp_path_factory.mktemp("web"), app="tests.servers.echo:application",
        DATABASE_URL=address(connection.settings_dict),
    ) as server:  # fmt: skip
        yield server


@pytest.fixture(scope="module")
def signed_in(rows_of_module: None) -> dict[str, str]:
    """The header of somebody whose long bodies are received."""
    return {"Authorization": f"Bearer {make_token(person('ann'), 'test', ['feeds'])[1]}"}


def bodies(received: bytes) -> list[dict]:
    """The answers of the echo in what was received."""
    parts = received.replace(b"\r\n\r\n", b"\n").split(b"\n")
    return [json.loads(line[: line.index(b"}") + 1]) for line in parts if line.startswith(b"{")]


@pytest.mark.parametrize("size", [0, 1, 8192, 65536, 65537, 2_500_000, 40_000_000])
def test_a_body_of_any_size_arrives_whole(
    server: WebServer, signed_in: dict[str, str], size: int
) -> None:
    body = os.urandom(size)
    path = "/x" if size < 3_000_000 else "/api/imports"
    answer = httpx.post(server.url + path, content=body, headers=signed_in, timeout=PATIENCE).json()
    assert (answer["length"], answer["digest"]) == (size, hashlib.sha256(body).hexdigest())


def test_a_request_may_come_byte_by_byte(server: WebServer) -> None:
    fields = HOST + b"Connection: close\r\nContent-Length: 3\r\n"
    request = b"POST /slow HTTP/1.1\r\n" + fields + b"\r\nabc"
    with server.connect() as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in request:
            peer.send(bytes([byte]))
        received = b""
        while data := peer.recv(4096):
            received += data
    assert bodies(received)[0]["length"] == 3


def test_requests_on_one_connection_are_kept_apart(server: WebServer) -> None:
    first = b"POST /one HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nfirst"
    second = b"POST /two HTTP/1.1\r\n" + HOST + b"Content-Length: 6\r\n\r\nsecond"
    third = b"GET /three HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    answers = bodies(server.exchange(first + second + third))
    assert [(each["path"], each["length"]) for each in answers] == [
        ("/one", 5), ("/two", 6), ("/three", 0),
    ]  # fmt: skip


def test_a_connection_is_used_again(server: WebServer) -> None:
    with httpx.Client() as client:
        for number in range(20):
            assert client.post(f"{server.url}/{number}", content=b"x" * number).status_code == 200
        assert len(client._transport._pool.connections) == 1


def test_a_client_that_waits_for_100_continue_gets_it(server: WebServer) -> None:
    head = b"POST /x HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 4\r\n"
    with server.connect(head + b"Connection: close\r\n\r\n") as peer:
        assert peer.recv(4096).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        peer.sendall(b"body")
        received = b""
        while data := peer.recv(4096):
            received += data
    assert bodies(received)[0]["length"] == 4
    assert b"100 Continue" not in received, "sent once"


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 900000000\r\n",
        b"Content-Length: 5\r\nContent-Length: 50\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length : 50\r\n",
        b"Content-Length: 5, 50\r\n",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"X: y\nContent-Length: 50\r\n",
    ],
)
def test_a_body_of_doubtful_length_is_no_second_request(server: WebServer, fields: bytes) -> None:
    smuggled = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"
    received = server.exchange(b"POST /unread HTTP/1.1\r\n" + HOST + fields + b"\r\n" + smuggled)
    assert b"smuggled" not in received.replace(b"POST", b"")
    assert received.count(b"HTTP/1.1 ") == 1


def test_a_body_that_is_too_long_is_refused_by_the_api_and_the_client_reads_why(
    server: WebServer,
) -> None:
    head = b"POST /api/x HTTP/1.1\r\n" + HOST + b"Content-Length: 900000000\r\n\r\n"
    received = server.exchange(head + b"x" * 300_000)
    assert b"200 OK" in received
    assert json.loads(received.rpartition(b"\r\n")[2])["received"] is False


def test_a_body_that_is_too_long_for_a_page_is_refused_by_the_server(
    server: WebServer, signed_in: dict[str, str]
) -> None:
    answer = httpx.post(f"{server.url}/x", content=b"x" * 3_000_000, headers=signed_in)
    assert (answer.status_code, answer.text) == (
        413, "The body has 3000000 bytes, more than this address accepts.",
    )  # fmt: skip


def test_a_parser_that_reads_a_body_piece_by_piece_copies_no_more_than_pieces() -> None:
    body = os.urandom(1_000_000)
    arrival = Arrival(BodyLimits(), 0, 10)
    arrival.add(b"POST / HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" + body, 0)
    arrival.admit(1, 0)
    reader, received = ArrivedRequest(arrival), b""
    while piece := reader.read(1000, read_ahead=len(body)):
        received += piece
        assert len(reader.buf.getvalue()) <= 65_536
    assert received.endswith(body)


def test_liveness_is_answered_without_the_application(server: WebServer) -> None:
    assert httpx.get(f"{server.url}/healthz/live?x=1").json() == {"status": "ok"}
    assert httpx.head(f"{server.url}/healthz/live").status_code == 200
    assert httpx.post(f"{server.url}/healthz/live").status_code == 405


def test_a_proxy_says_that_its_client_uses_https(server: WebServer) -> None:
    answer = httpx.get(f"{server.url}/x", headers={"X-Forwarded-Proto": "https"})
    assert answer.json()["scheme"] == "https"


def test_many_clients_at_once_are_all_answered(server: WebServer) -> None:
    def ask(number: int) -> int:
        return client.post(f"{server.url}/{number}", content=b"x" * 1000).json()["length"]

    with httpx.Client() as client, ThreadPoolExecutor(32) as pool:
        assert list(pool.map(ask, range(200))) == [1000] * 200
