"""Passwords are looked up in leaks by five digits of their hashes, and are stored nowhere."""

import logging
import threading

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from structlog.testing import capture_logs

from tailrace.db.query import query
from tailrace.domains.protection.services.exposures import password_check
from tailrace.domains.protection.services.providers.pwned_passwords import times_pwned
from tailrace.jobs.destinations.request_errors import Unavailable
from tests.kit import PATIENCE, at_once, wait_until
from tests.protection.test_no_ssn_anywhere import all_keys, all_rows
from tests.servers.hibp import HibpService
from tests.servers.web import Response
from tests.subscriptions.sample_domain import person
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/protection/passwords"
LEAKED, SAFE = "password", "correct horse, battery & staple"


@pytest.fixture
def ann(hibp: HibpService) -> User:
    hibp.passwords = {LEAKED: 9_545_824, "other": 3, "once": 1}
    return person("ann")


def test_the_request_is_that_of_the_protocol(hibp: HibpService) -> None:
    hibp.passwords = {LEAKED: 9_545_824}
    assert async_to_sync(times_pwned)(LEAKED) == 9_545_824
    assert async_to_sync(times_pwned)(SAFE) == 0
    first, second = hibp.requests
    assert (first.method, first.path, first.body) == ("GET", "/range/5BAA6", b"")
    assert first.headers["add-padding"] == "true"
    assert first.headers["user-agent"] == "Tailrace identity protection"
    assert "hibp-api-key" not in first.headers
    assert len(second.path) == len(first.path)


def test_padding_counts_as_no_leak(hibp: HibpService) -> None:
    padding = Response(200, b"1E4C9B93F3F0682250B6CF8331B7EE68FD8:0\r\n" + b"0" * 35 + b":0")
    hibp.faults["/range/5BAA6"] = padding
    assert async_to_sync(times_pwned)(LEAKED) == 0


@pytest.mark.parametrize(
    "response",
    [
        Response(200, b"<html>"),
        Response(200),
        Response(404),
        Response(200, b"A:x\r\n"),
        Response(200, b"0" * 35 + b":1\n" + b"0" * 34),
        Response(200, b"x" * 5_000_000),
    ],
)
def test_what_is_no_list_of_hashes_is_no_answer(hibp: HibpService, response: Response) -> None:
    hibp.faults["/range"] = response
    with pytest.raises(Unavailable):
        async_to_sync(times_pwned)(LEAKED)


@pytest.mark.parametrize(
    ("password", "text"),
    [
        (LEAKED, "was found in leaks 9,545,824 times."),
        ("once", "was found in leaks 1 time."),
        (f" {LEAKED}", "in none of the known leaks"),
        (SAFE, "in none of the known leaks"),
    ],
)
def test_the_page_says_how_often_it_stands_in_leaks(ann, password: str, text: str) -> None:
    page = Visitor(ann).post(PAGE, {"password": password})
    assert page.status_code == 200
    assert text in words(page)
    assert f'value="{password}"' not in page.content.decode()


def test_the_password_and_its_hash_stand_nowhere(
    ann, hibp: HibpService, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with capture_logs() as logs:
        page = Visitor(ann).post(PAGE, {"password": SAFE})
    digest = "B3449205"
    hibp.faults["/range"] = Response(500)
    away = Visitor(ann).post(PAGE, {"password": SAFE})
    assert (page.status_code, away.status_code) == (200, 503)
    places = {
        "database": all_rows(),
        "broker": all_keys(),
        "logs": f"{logs} {caplog.text}",
        "requests": repr(hibp.requests),
        "pages": page.content.decode() + away.content.decode(),
    }
    for place, text in places.items():
        assert "horse" not in text, place
        assert digest.lower() not in text.lower(), place


def test_while_the_list_is_away_the_page_says_so(ann, hibp: HibpService, monkeypatch) -> None:
    monkeypatch.setattr(password_check, "SECONDS", 0.2)
    browser = Visitor(ann)
    answers = threading.Event()
    hibp.before = lambda request: answers.wait(PATIENCE)
    slow = browser.post(PAGE, {"password": LEAKED})
    answers.set()
    assert slow.status_code == 503
    assert "The list of leaked passwords is not available now. Try again later." in words(slow)


def test_a_check_leaves_no_session_of_the_database(ann) -> None:
    browser = Visitor(ann)
    browser.get(PAGE)
    before = sessions()
    assert browser.post(PAGE, {"password": LEAKED}).status_code == 200
    wait_until(lambda: sessions() <= before)


def sessions() -> int:
    """How many sessions this database has."""
    query("SELECT pg_stat_clear_snapshot()")
    [(count,)] = query("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()")
    return int(count)


def test_two_are_checked_at_once(ann, hibp: HibpService) -> None:
    """While the answers of two checks are held, a third is refused."""
    statuses: list[int] = []

    def check(_: int) -> None:
        statuses.append(Visitor(ann).post(PAGE, {"password": "other"}).status_code)

    hibp.before = lambda request: at_once(1, check)
    assert Visitor(ann).post(PAGE, {"password": LEAKED}).status_code == 200
    assert statuses == [503, 200], "the third one is refused"
    hibp.before = lambda request: None
    assert Visitor(ann).post(PAGE, {"password": LEAKED}).status_code == 200


def test_what_is_no_password_is_refused(ann, hibp: HibpService) -> None:
    browser = Visitor(ann)
    for password in ("", "x" * 1001, "a\x00b"):
        assert browser.post(PAGE, {"password": password}).status_code == 422
    assert hibp.requests == []
