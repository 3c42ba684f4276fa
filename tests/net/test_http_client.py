"""One POST to a peer that may do anything: hang, drip, stream without end, break off, lie."""

import asyncio
import socket
import ssl
import threading
import time
from pathlib import Path

import pytest

from tailrace.db import clock as events_clock
from tailrace.net import http_client
from tailrace.net.http_client import Client, Reply, Request, retry_after
from tests.kit import PATIENCE
from tests.servers.raw import Authority, conversing, read_request, serving_tls
from tests.servers.web import Response, closed_port, serving, silent_port

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(autouse=True)
def _local(settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.WEBHOOK_ALLOWED_NETWORKS = ["127.0.0.0/8"]
    monkeypatch.setattr(http_client, "TOTAL_SECONDS", 60.0)


@pytest.fixture
def short_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "TOTAL_SECONDS", 0.6)


def post(url: str, body: bytes = b"{}") -> Reply:
    async def send() -> Reply:
        async with Client() as client:
            return await client.send(Request(url, {"content-type": "application/json"}, body))

    return asyncio.run(send())


def at(port: int, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{port}/in"


def test_it_posts_by_http_1_1_and_returns_the_reply() -> None:
    with serving(lambda request: Response(202, b"t\0aken", {"Retry-After": "7"})) as server:
        reply = post(f"{server.url}/in?a=b", b'{"x":1}')
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/in?a=b", b'{"x":1}')
    assert request.headers["user-agent"] == "Tailrace"
    assert "accept-encoding" not in request.headers
    assert (reply.status, reply.text, reply.retry_after, reply.error) == (202, "taken", 7.0, "")


@pytest.mark.usefixtures("short_deadline")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_silent_peer_costs_only_the_deadline(scheme: str) -> None:
    with silent_port() as port:
        reply = post(at(port, scheme))
    assert reply.status is None
    assert reply.error == "no answer in 0.6 s"
    assert reply.milliseconds > 500


def drip(beginning: bytes, piece: bytes) -> object:
    def talk(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(beginning)
        while True:
            peer.sendall(piece)
            time.sleep(0.02)

    return talk


@pytest.mark.usefixtures("short_deadline")
@pytest.mark.parametrize(
    ("beginning", "piece"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["status", "headers", "informational", "body", "chunks"],
)
def test_a_peer_that_drips_bytes_costs_only_the_deadline(beginning: bytes, piece: bytes) -> None:
    with conversing(drip(beginning, piece)) as port:  # type: ignore[arg-type]
        reply = post(at(port))
    assert not reply.arrived
    assert reply.error


@pytest.mark.usefixtures("short_deadline")
def test_a_peer_that_does_not_read_costs_only_the_deadline() -> None:
    given_up = threading.Event()
    with conversing(lambda peer: given_up.wait(PATIENCE)) as port:
        reply = post(at(port), b"x" * 50_000_000)
        given_up.set()
    assert not reply.arrived
    assert reply.error == "no answer in 0.6 s"


def test_an_answer_without_end_is_read_up_to_64_kb() -> None:
    sent = 0

    def stream(peer: socket.socket) -> None:
        nonlocal sent
        read_request(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            sent += peer.send(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")

    with conversing(stream) as port:
        reply = post(at(port))
    assert reply.arrived
    assert reply.status == 200
    assert len(reply.text) == http_client.TEXT_LENGTH
    assert sent < 20_000_000, "what the sockets' buffers hold"


def test_headers_without_end_are_refused() -> None:
    def stream(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            peer.sendall(b"X-A: " + b"b" * 10_000 + b"\r\n")

    with conversing(stream) as port:
        reply = post(at(port))
    assert not reply.arrived


def test_a_compressed_answer_is_not_unpacked() -> None:
    import gzip

    bomb = gzip.compress(b"\0" * 10_000_000)
    with serving(lambda request: Response(200, bomb, {"Content-Encoding": "gzip"})) as server:
        reply = post(server.url)
    assert reply.status == 200
    assert len(reply.text) <= http_client.TEXT_LENGTH


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ],
)
def test_a_response_that_breaks_off_has_not_arrived(answer: bytes) -> None:
    def talk(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(answer)

    with conversing(talk) as port:
        reply = post(at(port))
    assert not reply.arrived
    assert reply.error


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/9.9 x\r\n\r\n",
        b"\0" * 100,
        b"HTTP/1.1 200 OK\r\n: \r\n\r\n",
    ],
)
def test_a_response_that_is_not_http_is_a_network_error(answer: bytes) -> None:
    def talk(peer: socket.socket) -> None:
        read_request(peer)
        peer.sendall(answer)

    with conversing(talk) as port:
        reply = post(at(port))
    assert not reply.arrived
    assert reply.status is None


def test_a_connection_reset_is_an_error() -> None:
    def talk(peer: socket.socket) -> None:
        read_request(peer)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with conversing(talk) as port:
        assert post(at(port)).error
    assert (
        "refused" in post(at(closed_port())).error.lower()
        or "Connect call failed" in post(at(closed_port())).error
    )


def test_proxy_variables_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{closed_port()}")
    with serving() as server:
        assert post(server.url).status == 200


# --- TLS ------------------------------------------------------------------------------------------


async def post_to_name(url: str) -> Reply:
    async with Client(resolve=lambda host, port: ["127.0.0.1"]) as client:
        return await client.send(Request(url, {}, b"{}"))


async def test_tls_checks_the_name_at_the_checked_address(settings, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = authority.context("hook.example.org")
    named: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: named.append(name)
    settings.WEBHOOK_CA_FILE = str(authority.file)
    with serving_tls(lambda request: Response(204), context) as server:
        right = await post_to_name(f"https://hook.example.org:{server.server_port}/")
        wrong = await post_to_name(f"https://other.example.org:{server.server_port}/")
    assert right.status == 204
    assert server.requests[0].headers["host"] == f"hook.example.org:{server.server_port}"
    assert named == ["hook.example.org", "other.example.org"]
    assert wrong.status is None
    assert "certificate" in wrong.error
    assert len(server.requests) == 1


async def test_an_unknown_authority_or_an_old_certificate_is_refused(
    settings, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    with serving_tls(lambda request: Response(), authority.context("hook.example.org")) as server:
        unknown = await post_to_name(f"https://hook.example.org:{server.server_port}/")
    assert "certificate" in unknown.error
    settings.WEBHOOK_CA_FILE = str(authority.file)
    old = authority.context("hook.example.org", days=-1)
    with serving_tls(lambda request: Response(), old) as server:
        late = await post_to_name(f"https://hook.example.org:{server.server_port}/")
    assert "expired" in late.error
    assert not server.requests


def test_plain_http_behind_https_is_a_network_error() -> None:
    with serving() as server:
        reply = post(server.url.replace("http:", "https:"))
    assert reply.status is None
    assert "SSL" in reply.error


async def test_old_tls_is_refused(settings, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    settings.WEBHOOK_CA_FILE = str(authority.file)
    context = authority.context("hook.example.org")
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with serving_tls(lambda request: Response(), context) as server:
        reply = await post_to_name(f"https://hook.example.org:{server.server_port}/")
    assert reply.status is None
    assert not server.requests


# --- Retry-After ----------------------------------------------------------------------------------


def test_retry_after_is_read_in_both_forms_within_limits(clock) -> None:
    from datetime import timedelta
    from email.utils import format_datetime

    clock.step(86_400)
    soon = format_datetime(events_clock.now() + timedelta(seconds=120), usegmt=True)
    assert 60 <= (retry_after(soon) or 0) <= 120
    assert [retry_after(value) for value in ("120", "0", "-5", "1e9", "inf")] == [
        120, 1, 1, 3600, 3600
    ]  # fmt: skip
    assert retry_after("Wed, 21 Oct 2099 07:28:00 GMT") == 3600
    assert retry_after("Wed, 21 Oct 1999 07:28:00 GMT") == 1
    nonsense = ("", "soon", "nan", ",", "Mon, 99 Foo 2020", "0, 0 Jan 99999999 0:0", "\0", ";" * 99)
    assert [retry_after(value) for value in nonsense] == [None] * len(nonsense)


def test_a_printed_request_shows_no_url_header_or_body() -> None:
    request = Request("https://x.org/t0ken", {"authorization": "s3cret"}, b"b0dy")
    assert repr(request) == "Request()"
