"""The documented nginx and Caddy in front of the web server: slow clients end at the proxy."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.servers.gunicorn import WebServer, web_server
from tests.servers.proxies import Proxy, proxy

pytestmark = [pytest.mark.slow, pytest.mark.once]

TOKEN = "a-secret-token-of-a-feed"
HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    with web_server(tmp_path_factory.mktemp("web"), app="tests.servers.echo:application") as server:
        yield server


@pytest.fixture(params=["nginx", "caddy"])
def front(request: pytest.FixtureRequest, backend: WebServer, tmp_path: Path) -> Iterator[Proxy]:
    with proxy(request.param, tmp_path, backend.port) as running:
        yield running


def test_slow_clients_silence_nothing_and_no_token_is_logged(front: Proxy) -> None:
    with ExitStack() as stack, front.client() as client:
        for number in range(64):
            peer = front.connect(HEAD + b"\r\nhalf" * (number % 2))
            stack.enter_context(closing(peer))
        answer = client.get(f"/feeds/me/{TOKEN}.atom")
        assert answer.json()["path"] == f"/feeds/me/{TOKEN}.atom"
        assert answer.json()["scheme"] == "https"
        assert "max-age" in answer.headers["Strict-Transport-Security"]
        assert client.post("/x", content=b"x" * 2_000_000).json()["length"] == 2_000_000
        too_much = client.post("/x", content=b"x" * 30_000_000)
        assert too_much.status_code == 413 or too_much.json()["length"] == 0
    assert TOKEN not in front.logs()
