"""What the logs and error reports give away: no token of a feed or of an unsubscription."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.test import Client
from structlog.stdlib import ProcessorFormatter

from tailrace.config.monitoring import sentry
from tailrace.config.monitoring.routes import route_of
from tests.addresses import address
from tests.kit import wait_until
from tests.servers.gunicorn import web_server

TOKEN = "a-secret-token-that-opens-a-feed"
PATHS = (
    f"/feeds/me/{TOKEN}.atom",
    f"/feeds/me/{TOKEN}.rss",
    f"/feeds/me/{TOKEN}.xml",
    f"/feeds/me/{TOKEN}/../x",
    f"/unsubscribe/{TOKEN}",
    f"/unsubscribe/{TOKEN}/",
    f"/{TOKEN}",
    f"/nowhere/{TOKEN}?token={TOKEN}",
)
SERVERS = {
    "gunicorn": (),
    "uvicorn": ("uvicorn", "tailrace.config.servers.asgi:application", "--port", "{port}"),
}


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", SERVERS)
def test_the_access_log_holds_no_token(name: str, tmp_path: Path, django_db_setup: None) -> None:
    from django.db import connection

    with (
        web_server(
            tmp_path, *SERVERS[name], DATABASE_URL=address(connection.settings_dict)
        ) as server,
        httpx.Client() as client,
    ):
        for path in PATHS:
            client.get(server.url + path)
            client.post(server.url + path, data={"x": TOKEN})
        # What no application sees, since the server refuses it.
        server.exchange(f"GET /feeds/me/{TOKEN}.atom\r\n\r\n".encode())
        server.exchange(f"GET / HTTP/1.1\r\nCookie : {TOKEN}\r\n\r\n".encode())
        server.exchange(f"GET /unsubscribe/{TOKEN} HTTP/1.1\r\nHost: {TOKEN}\r\n\r\n".encode())
        client.get(f"{server.url}/accounts/login/?last")
        wait_until(lambda: "/accounts/login/" in server.log.read_text())
        assert "/feeds/me/<str:token>.atom" in server.log.read_text()
        assert TOKEN not in server.log.read_text()


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What a web process logs of Django, in its own format."""
    written: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            written.append(self.format(record))

    handler = Keep()
    handler.setFormatter(
        next(
            each.formatter
            for each in logging.getLogger().handlers
            if isinstance(each.formatter, ProcessorFormatter)
        )
    )
    logging.getLogger("django").addHandler(handler)
    yield written
    logging.getLogger("django").removeHandler(handler)


@pytest.mark.django_db
def test_a_refused_request_is_logged_by_its_route(lines: list[str]) -> None:
    for path in PATHS:
        Client().get(path)
        Client(enforce_csrf_checks=True).post(path)
        Client().put(path, headers={"Host": "other.example.org"})
    assert len(lines) >= len(PATHS)
    assert any("route=/feeds/me/<str:token>.atom" in line for line in lines)
    assert TOKEN not in "".join(lines)


@pytest.mark.parametrize("path", PATHS)
def test_an_error_report_names_the_route(path: str) -> None:
    url = f"http://127.0.0.1:8000{path}"
    report = sentry.scrub(
        {"request": {"url": url, "method": "GET"}, "transaction": path.partition("?")[0]}, {}
    )
    assert TOKEN not in json.dumps(report)


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/", "/"),
        (f"/feeds/me/{TOKEN}.atom", "/feeds/me/<str:token>.atom"),
        ("/admin/tailrace_jobs/job/7/change/", "/admin/tailrace_jobs/job/7/change/"),
        ("/static/web/pages.css", "/static/…"),
        ("/favicon.ico", "(no route)"),
    ],
)
def test_a_route_says_which_page_it_was(path: str, route: str) -> None:
    assert route_of(path) == route
