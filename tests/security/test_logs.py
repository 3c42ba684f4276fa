"""What the logs and error reports give away: no token of a feed or of an unsubscription."""

import json
import logging
import secrets
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.contrib.auth.models import User
from django.core import signing
from django.test import Client
from structlog.stdlib import ProcessorFormatter

from tailrace.config.monitoring import sentry
from tailrace.config.monitoring.routes import route_of
from tailrace.jobs.runtime.logs import without_secrets
from tailrace.net.signing import new_secret
from tailrace.subscriptions.channels.mail.unsubscribe import event_url
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.web.accounts.tokens import make as make_token
from tailrace.web.handlers import reset_tokens
from tests.addresses import address
from tests.kit import wait_until
from tests.servers.gunicorn import web_server

TOKEN = "a-secret-token-that-opens-a-feed"
PATHS = (
    f"/feeds/me/{TOKEN}.atom",
    f"/feeds/me/{TOKEN}.rss",
    f"/feeds/me/{TOKEN}.xml",
    f"/feeds/me/{TOKEN}/../x",
    f"/feeds/me/{TOKEN}%0A.atom",
    f"/feeds/me/{TOKEN[:20]}%1b{TOKEN[20:]}.rss",
    f"/unsubscribe/{TOKEN}%E2%80%A8",
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


CHARACTERS = (
    "%0A", "%09", "%C3%A9", "%00", "%E2%80%A8", "%1b", "%0d%0a", "%20", "%22", "%27", "%5C", "%7F",
    "%F0%9F%98%80", "%ff", "%C2%85", "~", ".", ":", ",", "%3F", "%23", "%2B", "-",
)  # fmt: skip


def changed(secret: str) -> Iterator[str]:
    """Yield addresses' ends from which somebody who reads them can tell the secret."""
    yield secret
    half = len(secret) // 2
    for character in CHARACTERS:
        yield secret + character
        yield secret[:half] + character + secret[half:]


@pytest.mark.django_db
def test_a_changed_secret_is_not_logged_either(lines: list[str]) -> None:
    ann = User.objects.create_user("ann", "ann@example.org", "a password of ann")
    feed = make_feed(ann)[1].rsplit("/", 1)[-1].removesuffix(".atom")
    folders = {
        feed: ("/feeds/me/", ".atom"),
        event_url(ann, "builds.package.failed", "owner").rsplit("/", 1)[-1]: ("/unsubscribe/", ""),
        reset_tokens.make_token(ann): ("/accounts/password/reset/MQ/", "/"),
        make_token(ann, "laptop", ["events:read"])[1]: ("/", ""),
        new_secret(): ("/nowhere/", ""),
    }
    for secret, (before, after) in folders.items():
        for number, text in enumerate(changed(secret)):
            path = f"{before}{text}{after}"
            if number % 2:
                Client(enforce_csrf_checks=True).post(path)
            else:
                Client().get(path)
    logged = "".join(lines)
    assert len(lines) > 40
    for secret in folders:
        half = len(secret) // 2
        assert secret[:half] not in logged or secret[half:] not in logged, secret


@pytest.mark.django_db
def test_a_line_keeps_names_and_hashes_and_loses_tokens() -> None:
    kept = (
        "test_a_line_of_a_function_with_a_name_of_some_length at lib/python3.11/site-packages/x.py"
        f" {'0123456789abcdef' * 4} 5f0c6a0e-6f0b-4f7e-9a3c-0d1e2f3a4b5c"
    )
    assert without_secrets(kept) == kept
    token, signature = secrets.token_urlsafe(32), signing.Signer().sign_object([1])
    for secret in (
        token,
        signature,
        f"tr_{token}",
        new_secret(),
        reset_tokens.make_token(User(pk=1)),
    ):
        assert secret not in without_secrets(f"GET /x?y={secret} and postgres://u:p@host/db")
    assert without_secrets("postgres://u:p@host/db") == "postgres://***@host/db"


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
