"""Slow clients and many logins: the health page answers, and so do the others' pages."""

import os
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest
from django.db import connection

from tests.addresses import address
from tests.kit import PATIENCE, at_once, wait_until
from tests.servers.gunicorn import WebServer, read_to_end, web_server
from tests.subscriptions.sample_domain import person
from tests.web.program import make_token

# What the server records is removed after each test.
pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.django_db(transaction=True)]

ATTACKERS = 64
HELD_SECONDS = PATIENCE * 2
"""For how long the server waits for the attackers: what waited for them would take as long."""
PROMPT_SECONDS = 20.0
"""A health page that waits for nobody takes milliseconds; this is for a crowded machine."""

GET = b"GET /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST /accounts/login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"
SLOW = {
    "says nothing": b"",
    "half a head": GET,
    "half a body": POST + b"username=x",
    "half an upload in a file": POST.replace(b"100000", b"9000000") + b"x" * 200_000,
    "more than is read": POST.replace(b"100000", b"900000000") + b"x" * 200_000,
    "a body without length": POST.replace(b"Content-Length: 100000", b"Transfer-Encoding: chunked"),
    "does not hang up": GET + b"Connection: close\r\n\r\n",
    "reads nothing": (GET + b"\r\n") * 20,
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None) -> Iterator[WebServer]:
    """A web server that waits long for its clients."""
    with web_server(
        tmp_path_factory.mktemp("web"),
        DATABASE_URL=address(connection.settings_dict),
        WEB_READ_SECONDS=str(int(HELD_SECONDS)),
    ) as server:
        yield server


def seconds_of(server: WebServer, path: str) -> float:
    """How long a page takes; it must be there."""
    started = time.monotonic()
    answer = httpx.get(server.url + path, timeout=HELD_SECONDS)
    assert answer.status_code == 200, answer.text
    return time.monotonic() - started


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
def test_slow_clients_silence_nothing(server: WebServer, sent: bytes) -> None:
    with ExitStack() as stack:
        for _ in range(ATTACKERS):
            stack.enter_context(closing(server.connect(sent)))
        for path in ("/healthz/live", "/healthz", "/accounts/login/"):
            seconds = seconds_of(server, path)
            sys.stdout.write(f"{path}: {seconds:.3f} s\n")
            assert seconds < PROMPT_SECONDS, path


def test_more_connections_than_the_server_has_silence_nothing(server: WebServer) -> None:
    with ExitStack() as stack:
        for _ in range(1000):
            stack.enter_context(closing(server.connect(GET)))
        for path in ("/healthz/live", "/healthz", "/accounts/login/"):
            assert seconds_of(server, path) < PROMPT_SECONDS, path


def test_forty_logins_at_once_do_not_delay_the_health_page(server: WebServer) -> None:
    page = httpx.get(f"{server.url}/accounts/login/")
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)', page.text)
    assert token
    form = {"csrfmiddlewaretoken": token[1], "username": "nobody", "password": "wrong"}

    def log_in(number: int) -> int:
        return httpx.post(
            f"{server.url}/accounts/login/", data=form, cookies=page.cookies, timeout=PATIENCE
        ).status_code

    threads = threading.Thread(target=at_once, args=(40, log_in))
    threads.start()
    slowest = {"/healthz/live": 0.0, "/healthz": 0.0}
    while threads.is_alive():
        for path in slowest:
            slowest[path] = max(slowest[path], seconds_of(server, path))
    threads.join()
    sys.stdout.write(f"{slowest}\n")
    assert max(slowest.values()) < PROMPT_SECONDS


def test_the_asgi_server_says_that_it_lives(tmp_path: Path) -> None:
    with web_server(
        tmp_path, "uvicorn", "tailrace.config.servers.asgi:application", "--port", "{port}",
        DATABASE_URL="postgres://nobody@127.0.0.1:1/none",
    ) as server, ExitStack() as stack:  # fmt: skip
        for _ in range(ATTACKERS):
            stack.enter_context(closing(server.connect(GET)))
        assert seconds_of(server, "/healthz/live") < PROMPT_SECONDS


def wait_for_end(peer: socket.socket) -> bytes:
    peer.settimeout(PATIENCE)
    return read_to_end(peer)


def test_what_does_not_arrive_in_time_is_refused(tmp_path: Path) -> None:
    def dribble(peer: socket.socket) -> None:
        """Send a byte now and then: each of them within any timeout between two bytes."""
        while peer.fileno() >= 0:
            try:
                peer.send(b"x")
            except OSError:
                return
            time.sleep(0.2)

    with web_server(tmp_path, app="tests.servers.echo:application", WEB_READ_SECONDS="1") as server:
        for sent, answer in (
            (b"", b""),
            (GET, b"408 Request Timeout"),
            (POST.replace(b"100000", b"1000"), b"408 Request Timeout"),
            (GET + b"X: " + b"x" * 70_000, b"431 Request Header Fields Too Large"),
        ):
            with server.connect(sent) as peer:
                if sent:
                    threading.Thread(target=dribble, args=(peer,), daemon=True).start()
                try:
                    received = wait_for_end(peer)
                except ConnectionResetError:  # what it sent after the answer
                    continue
                assert answer in received


def test_the_files_of_uploads_that_end_halfway_are_gone(tmp_path: Path) -> None:
    files = tmp_path / "files"
    files.mkdir()

    def held(server: WebServer) -> int:
        """Temporary files that the server's processes have open."""
        import psutil

        below = psutil.Process(server.process.pid).children()
        links = (os.readlink(link) for each in below for link in _links(each.pid))
        return sum(str(files) in link for link in links)

    token = make_token(person("ann"), "test", ["feeds"])[1]
    head = f"POST /api/photos HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    half = head.encode() + b"Content-Length: 9000000\r\n\r\n" + b"x" * 200_000
    with web_server(
        tmp_path, app="tests.servers.echo:application", TMPDIR=str(files),
        DATABASE_URL=address(connection.settings_dict),
    ) as server:  # fmt: skip
        before = held(server)
        with ExitStack() as stack:
            for _ in range(8):
                peer = server.connect(half)
                stack.enter_context(closing(peer))
            wait_until(lambda: held(server) == before + 8)
        wait_until(lambda: held(server) == before)


def _links(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        pytest.skip("this system has no /proc")
