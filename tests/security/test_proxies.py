"""The documented nginx and Caddy in front of the web server: slow clients end at the proxy."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from django.db import connection

from tests.addresses import address
from tests.servers.gunicorn import WebServer, web_server
from tests.servers.proxies import Proxy, proxy
from tests.subscriptions.sample_domain import person
from tests.web.program import make_token

pytestmark = [pytest.mark.slow, pytest.mark.once, pytest.mark.django_db]

TOKEN = "a-secret-token-of-a-feed"
HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory, rows_of_module: None) -> Iterator[WebServer]:
    with web_server(
        tmp_path_factory.mktemp("web"), app="tests.servers.echo:application",
        DATABASE_URL=address(connection.settings_dict),
    ) as server:  # fmt: skip
        yield server


@pytest.fixture(scope="module")
def signed_in(rows_of_module: None) -> dict[str, str]:
    """The header of a user, whose long bodies are received."""
    return {"Authorization": f"Bearer {make_token(person('ann'), 'test', ['feeds'])[1]}"}


@pytest.fixture(params=["nginx", "caddy"])
def front(request: pytest.FixtureRequest, backend: WebServer, tmp_path: Path) -> Iterator[Proxy]:
    with proxy(request.param, tmp_path, backend.port) as running:
        yield running


def test_slow_clients_silence_nothing_and_no_token_is_logged(
    front: Proxy, signed_in: dict[str, str]
) -> None:
    with ExitStack() as stack, front.client() as client:
        for number in range(64):
            peer = front.connect(HEAD + b"\r\nhalf" * (number % 2))
            stack.enter_context(closing(peer))
        answer = client.get(f"/feeds/me/{TOKEN}.atom")
        assert answer.json()["path"] == f"/feeds/me/{TOKEN}.atom"
        assert answer.json()["scheme"] == "https"
        assert "max-age" in answer.headers["Strict-Transport-Security"]
        for path, length in (("/x", 2_000_000), ("/api/records/depositions", 40_000_000)):
            answer = client.post(path, content=b"x" * length, headers=signed_in)
            assert answer.json()["length"] == length
        too_much = client.post("/x", content=b"x" * 30_000_000)
        assert too_much.status_code == 413
    assert TOKEN not in front.logs()
