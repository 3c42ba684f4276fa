"""Requests that need what another session has locked end with 503, in a bounded time."""

from pathlib import Path

import httpx
import pytest
from django.db import connection, transaction
from django.test import Client

from tests.addresses import address
from tests.kit import PATIENCE
from tests.servers.gunicorn import web_server
from tests.web.program import program


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.django_db(transaction=True)
def test_a_request_waits_for_a_lock_for_a_bounded_time(tmp_path: Path) -> None:
    ann = program("ann", "inbox:read")
    browser = Client()
    browser.force_login(ann.user)
    session = {"Cookie": f"sessionid={browser.cookies['sessionid'].value}"}
    database = address(connection.settings_dict)
    with web_server(tmp_path, DATABASE_URL=database, WEB_LOCK_SECONDS="1") as server:

        def get(path: str, headers: dict[str, str]) -> httpx.Response:
            return httpx.get(server.url + path, headers=headers, timeout=PATIENCE)

        def both() -> tuple[httpx.Response, httpx.Response]:
            token = {"Authorization": f"Bearer {ann.text}"}
            return get("/me/inbox", session), get("/api/inbox", token)

        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("LOCK TABLE tailrace_subscriptions_inboxitem")
            page, problem = both()
        assert (page.status_code, page.headers["Retry-After"]) == (503, "2")
        assert "Wait a few seconds, then go back and try again" in page.text
        assert (problem.status_code, problem.headers["Retry-After"]) == (503, "5")
        assert "waited too long for a lock" in problem.json()["detail"]
        assert [answer.status_code for answer in both()] == [200, 200]
