"""Who may send which body, and what those get who send none."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from datetime import timedelta

import httpx
import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from tailrace.config.servers.arrival import Arrival
from tailrace.web.bodies import LARGE, SLOWEST, SLOWEST_LARGE, SMALL, BodyLimits
from tailrace.web.models import ApiToken
from tests.addresses import address
from tests.kit import PATIENCE
from tests.servers.gunicorn import WebServer, read_to_end, web_server
from tests.subscriptions.sample_domain import person
from tests.web.program import make_token

pytestmark = [pytest.mark.once, pytest.mark.django_db]

CONFIG = ("gunicorn", "--config", "tests/servers/small_gunicorn.py", "tests.servers.echo")
HUNDRED_KB = b"x" * 100_000
SPACE = 2_000_000
"""Bytes of bodies that the server keeps while they arrive."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, rows_of_module: None) -> Iterator[WebServer]:
    """A server that waits two seconds for its clients, and has SPACE for their bodies."""
    with web_server(
        tmp_path_factory.mktemp("web"), *CONFIG,
        DATABASE_URL=address(connection.settings_dict), WEB_READ_SECONDS="2", SPACE=str(SPACE),
    ) as server:  # fmt: skip
        yield server


@pytest.fixture(scope="module")
def tokens(rows_of_module: None) -> dict[str, str]:
    """The tokens of three users."""
    return {name: make_token(person(name), "test", ["feeds"])[1] for name in ("ann", "bob", "cid")}


@pytest.fixture(scope="module")
def session(tokens: dict[str, str]) -> str:
    """The cookie of a user."""
    return _cookie(_signed_in(User.objects.get(username="ann")))


@pytest.fixture(scope="module")
def former(rows_of_module: None) -> list[dict[str, str]]:
    """The headers of an expired token and an ended session, and those of an inactive user."""
    dan, eve = person("dan"), person("eve")
    token, text = make_token(dan, "expired", ["feeds"])
    ApiToken.objects.filter(pk=token.pk).update(expires_at=timezone.now() - timedelta(days=1))
    browser = _signed_in(dan)
    ended = _cookie(browser)
    browser.logout()
    cookies = [ended, _cookie(_signed_in(eve))]
    texts = [text, make_token(eve, "test", ["feeds"])[1]]
    User.objects.filter(pk=eve.pk).update(is_active=False)
    return [
        *({"Cookie": cookie} for cookie in cookies),
        *({"Authorization": f"Bearer {text}"} for text in texts),
    ]


def _signed_in(user: User) -> Client:
    browser = Client()
    browser.force_login(user)
    return browser


def _cookie(browser: Client) -> str:
    return f"sessionid={browser.cookies['sessionid'].value}"


@pytest.fixture
def peers() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def head(path: str, length: int, token: str = "", *lines: str) -> bytes:
    authorization = [f"Authorization: Bearer {token}"] if token else []
    fields = ["Host: 127.0.0.1", f"Content-Length: {length}", *authorization, *lines]
    return "\r\n".join([f"POST {path} HTTP/1.1", *fields, "", ""]).encode()


def begun(peers: ExitStack, server: WebServer, data: bytes) -> socket.socket:
    """A connection that has sent `data` and does not send the rest."""
    return peers.enter_context(closing(server.connect(data)))


def admitted(peers: ExitStack, server: WebServer, path: str, length: int, token: str) -> bytes:
    """The beginning of the answer to a client who waits until it may send its body."""
    peer = begun(peers, server, head(path, length, token, "Expect: 100-continue"))
    return peer.recv(len(CONTINUE))


def refusal(server: WebServer, data: bytes) -> bytes:
    """The answer to a client who sends no more."""
    with server.connect(data) as peer:
        peer.shutdown(socket.SHUT_WR)
        return read_to_end(peer)


def status(server: WebServer, path: str, body: bytes, token: str = "", **headers: str) -> int:
    if token:
        headers["Authorization"] = f"Bearer {token}"
    answer = httpx.post(server.url + path, content=body, headers=headers, timeout=PATIENCE)
    return answer.status_code


def test_a_stranger_sends_small_bodies_alone(server: WebServer) -> None:
    assert status(server, "/accounts/login/", b"x" * SMALL) == 200
    assert status(server, "/accounts/login/", b"x" * (SMALL + 1)) == 413
    answer = refusal(server, head("/x", SMALL + 1, "", "Expect: 100-continue"))
    assert answer.startswith(b"HTTP/1.1 413 "), "the body is not waited for"
    assert answer.endswith(b"\r\nSign in to send more than 64 KiB.")
    answer = refusal(server, head("/api/photos", 20_000_000))
    assert json.loads(answer.rpartition(b"\r\n")[2])["received"] is False, "the API says who it is"


def test_who_is_signed_in_sends_more_by_token_or_session(
    server: WebServer, tokens: dict[str, str], session: str
) -> None:
    proxy = {"Authorization": "Basic eDp5", "Cookie": session}
    assert status(server, "/x", HUNDRED_KB, tokens["ann"]) == 200
    assert status(server, "/x", HUNDRED_KB, Cookie=session) == 200
    assert status(server, "/x", HUNDRED_KB, **proxy) == 200
    assert status(server, "/accounts/login/", HUNDRED_KB, tokens["ann"]) == 413


def test_former_and_false_credentials_are_those_of_strangers(
    server: WebServer, former: list[dict[str, str]]
) -> None:
    for headers in (*former, {"Authorization": "Bearer tr_" + "x" * 43}):
        assert status(server, "/x", HUNDRED_KB, **headers) == 413, headers
    for key in ("none", "\x01", "é"):
        answer = refusal(server, head("/x", 100_000, "", f"Cookie: sessionid={key}"))
        assert answer.startswith(b"HTTP/1.1 413 "), key


def test_silent_claims_take_nothing_from_others(
    server: WebServer, tokens: dict[str, str], peers: ExitStack
) -> None:
    for _ in range(28):
        begun(peers, server, head("/accounts/login/", SPACE) + b"x")
        begun(peers, server, head("/api/photos", SPACE, tokens["bob"]) + b"x")
    assert status(server, "/x", HUNDRED_KB, tokens["ann"]) == 200


def test_the_user_with_the_most_bytes_loses_a_body_first(
    server: WebServer, tokens: dict[str, str], peers: ExitStack
) -> None:
    sizes = {"bob": SPACE - 500_000, "ann": 400_000, "cid": 300_000}
    bob, ann, cid = (
        begun(peers, server, head("/api/photos", size + 1, tokens[name]) + b"x" * size)
        for name, size in sizes.items()
    )
    assert bob.recv(100).startswith(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\n")
    for other in (ann, cid):
        other.sendall(b"x")
        assert other.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_places_for_large_bodies_are_for_signed_in_users_one_each(
    server: WebServer, tokens: dict[str, str], peers: ExitStack
) -> None:
    def claim(token: str = "", length: int = 4_500_000_000) -> bytes:
        return admitted(peers, server, "/api/imports", length, token)

    with ExitStack() as own:
        assert claim().startswith(b"HTTP/1.1 200 OK"), "the app says that it is a stranger"
        assert claim("tr_" + "x" * 43).startswith(b"HTTP/1.1 200 OK")
        assert admitted(own, server, "/api/imports", LARGE + 1, tokens["ann"]) == CONTINUE
        assert claim(tokens["ann"]).startswith(b"HTTP/1.1 429 ")
        assert claim(tokens["ann"], LARGE) == CONTINUE, "it is not large"
        assert claim(tokens["bob"]) == CONTINUE
        assert claim(tokens["cid"]).startswith(b"HTTP/1.1 503 ")
    assert status(server, "/x", HUNDRED_KB, tokens["cid"]) == 200
    assert claim(tokens["cid"]) == CONTINUE, "a place is free again"


def test_a_silent_sender_is_dropped(
    server: WebServer, tokens: dict[str, str], peers: ExitStack
) -> None:
    silent = [
        begun(peers, server, head(path, length, tokens["ann"]) + b"x")
        for path, length in (("/api/photos", 20_000_000), ("/api/imports", 4_500_000_000))
    ]
    for peer in silent:
        assert peer.recv(100).startswith(b"HTTP/1.1 408 Request Timeout")


@pytest.mark.parametrize(
    ("length", "rate"), [(SMALL, SLOWEST), (LARGE, SLOWEST), (LARGE + 1, SLOWEST_LARGE)]
)
def test_a_body_has_a_minimum_rate_while_it_arrives(length: int, rate: int) -> None:
    arrival = Arrival(BodyLimits(), 0, 10)
    arrival.add(head("/api/imports", length), 5)
    if arrival.waits:
        arrival.admit(1, 5)
    assert arrival.until == 15
    arrival.add(b"x" * (rate * 2), 14)
    assert arrival.until == 17, "seven seconds for 10 s and two seconds' worth of bytes"
    arrival.add(b"x" * rate, 14)
    assert arrival.until == 18
    arrival.add(b"x" * (rate // 2), 14)
    assert arrival.until == 18.5


def test_a_fast_sender_may_not_pause_for_long() -> None:
    arrival = Arrival(BodyLimits(), 0, 10)
    arrival.add(head("/api/imports", LARGE), 0)
    arrival.admit(1, 0)
    arrival.add(b"x" * (SLOWEST * 20), 1)
    assert arrival.until == 11


def test_requests_follow_a_long_body_on_its_connection(
    server: WebServer, tokens: dict[str, str]
) -> None:
    requests = head("/one", 100_000, tokens["ann"]) + HUNDRED_KB
    requests += head("/two", 100_000, tokens["ann"]) + HUNDRED_KB
    requests += b"GET /three HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    lines = [line for line in server.exchange(requests).split(b"\r\n") if b'{"path"' in line]
    text = b"".join(lines).decode()
    for path, length in (("/one", 100_000), ("/two", 100_000), ("/three", 0)):
        assert f'{{"path": "{path}", "scheme": "http", "received": true, "length": {length}' in text


def test_a_network_has_a_bounded_number_of_unfinished_small_bodies(
    server: WebServer, tokens: dict[str, str], peers: ExitStack
) -> None:
    unfinished = head("/accounts/login/", 1000) + b"x"
    first, *_ = [begun(peers, server, unfinished) for _ in range(65)]
    assert first.recv(100).startswith(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n")
    assert status(server, "/x", HUNDRED_KB, tokens["ann"]) == 200


def test_a_length_of_five_thousand_digits_ends_nothing(server: WebServer) -> None:
    answer = refusal(
        server, b"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n"
    )
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert status(server, "/x", b"small") == 200
