"""Have I Been Pwned: what is sent, byte for byte, and what becomes of its answers."""

import json
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from asgiref.sync import async_to_sync

from tailrace.config.platform_settings.variables import PlatformSettings
from tailrace.domains.protection.models import Kind
from tailrace.domains.protection.services.providers import hibp as client
from tailrace.domains.protection.services.providers.hibp import plain_text
from tailrace.domains.protection.services.providers.source import ValueNotAccepted, all_sources
from tailrace.domains.protection.settings import ProtectionSettings
from tailrace.jobs.destinations.request_errors import RequestRefused, Unavailable
from tests.servers.hibp import KEY, HibpService, document, error, make_breach
from tests.servers.web import Response

pytestmark = pytest.mark.django_db(transaction=True)
EMAIL = "ann+x/y@example.org"


def look_up(source: Any, value: str = EMAIL) -> list[Any]:
    return list(async_to_sync(source.lookup)("email", value))


def headers_to(hibp: HibpService) -> dict[str, str]:
    """All that is sent without a key."""
    return {"host": urlsplit(hibp.url).netloc, "user-agent": "Tailrace identity protection"}


def test_the_requests_are_those_of_the_protocol(hibp) -> None:
    assert look_up(client.HibpBreaches()) == look_up(client.HibpPastes()) == []
    async_to_sync(client.HibpBreaches().lookup)("phone", "+12125550100")
    breaches, pastes, phone = hibp.requests
    quoted = "ann%2Bx%2Fy%40example.org"
    assert breaches.path == f"/breachedaccount/{quoted}?truncateResponse=false"
    assert pastes.path == f"/pasteaccount/{quoted}"
    assert phone.path == "/breachedaccount/%2B12125550100?truncateResponse=false"
    for request in hibp.requests:
        assert (request.method, request.body) == ("GET", b"")
        assert request.headers == headers_to(hibp) | {"hibp-api-key": KEY}


def test_what_needs_no_key_sends_none(hibp) -> None:
    hibp.add(make_breach("Adobe"))
    latest = async_to_sync(client.latest_breach)()
    everything = async_to_sync(client.all_breaches)()
    assert latest is not None
    assert latest.name == "Adobe"
    assert [each.name for each in everything] == ["Adobe"]
    assert [request.path for request in hibp.requests] == ["/latestbreach", "/breaches"]
    for request in hibp.requests:
        assert request.headers == headers_to(hibp)


def test_a_breach_is_read_with_all_that_is_shown_of_it(hibp) -> None:
    description = "<p>Lost <em>all</em>&hellip;</p><script>alert(1)</script><a href=javascript:x>s"
    hibp.add(make_breach("Adobe", "Passwords", Title="Adobe \x00 Inc", Description=description,
                         BreachDate="2013-10-04"), EMAIL)  # fmt: skip
    [found] = look_up(client.HibpBreaches())
    assert (found.name, found.title, found.domain) == ("Adobe", "Adobe Inc", "adobe.example")
    assert found.breached_on == date(2013, 10, 4)
    assert found.added_at == datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert list(found.data_classes) == ["Passwords"]
    assert found.description == "Lost all…s"
    assert found.accounts == 152445165


def test_a_paste_may_lack_its_title_and_date(hibp) -> None:
    hibp.pastes[EMAIL] = [
        {"Source": "Pastebin", "Id": "8Q0BvKD8", "EmailCount": 139},
        {"Source": "Slexy", "Id": "x", "Title": "", "Date": None, "EmailCount": 1},
        {"Source": "Ghostbin", "Id": "y", "Title": "dump", "Date": "2013-03-28T16:51:10Z"},
    ]
    first, second, third = look_up(client.HibpPastes())
    assert (first.name, first.title) == ("Pastebin:8Q0BvKD8", "Paste on Pastebin")
    assert (second.breached_on, second.added_at) == (None, None)
    assert (third.title, third.breached_on) == ("dump", date(2013, 3, 28))
    assert list(first.data_classes) == ["Email addresses"]


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (Response(200, b"<html>Checking your browser</html>"), "not JSON"),
        (Response(200, json.dumps([make_breach("Adobe")]).encode()[:-9]), "not JSON"),
        (error(200, "Oops"), "answered 200 with the error Oops"),
        (document({"statusCode": 500, "message": None}), "answered 200 with the error None"),
        (document([{"Title": "nameless"}]), "unexpected JSON"),
        (document([{"Name": ""}]), "unexpected JSON"),
        (document([{"Name": "x", "BreachDate": "soon"}]), "unexpected JSON"),
        (document("Adobe"), "unexpected JSON"),
        (Response(200, b"[" + b'{"Name": "x"},' * 400_000), "answered with more than"),
        (
            Response(404, b"<!DOCTYPE html>", {"Content-Type": "text/html"}),
            "check PROTECTION_HIBP_URL",
        ),
        (Response(202), "answered 202"),
        (Response(500), "answered 500"),
        (Response(302, headers={"Location": "/x"}), "answered 302"),
    ],
)
def test_an_answer_that_is_none_says_so(hibp, response: Response, reason: str) -> None:
    hibp.faults["/"] = response
    with pytest.raises(Unavailable, match=reason):
        look_up(client.HibpBreaches())


def test_a_wrong_key_is_named_and_not_shown(hibp, settings) -> None:
    settings.PROTECTION_HIBP_KEY = "f" * 32
    with pytest.raises(RequestRefused, match="answered 401: check PROTECTION_HIBP_KEY") as refusal:
        look_up(client.HibpBreaches())
    assert "ffff" not in str(refusal.value)
    assert len(hibp.requests) == 1


def test_a_value_that_is_not_accepted_is_no_fault_of_the_key(hibp) -> None:
    with pytest.raises(ValueNotAccepted):
        look_up(client.HibpBreaches(), " ")


def test_without_a_key_there_is_a_reason(hibp, settings) -> None:
    assert [source.name for source in all_sources()] == ["hibp_breaches", "hibp_pastes"]
    assert [source.why_not() for source in all_sources()] == ["", ""]
    settings.PROTECTION_HIBP_KEY = ""
    assert {source.why_not() for source in all_sources()} == {"PROTECTION_HIBP_KEY is not set"}


def test_no_source_takes_what_it_cannot_look_up() -> None:
    kinds = frozenset.union(*[source.kinds for source in all_sources()])
    assert kinds == {Kind.EMAIL, Kind.PHONE, Kind.USERNAME}, "no SSN leaves the house"


@pytest.mark.parametrize(
    ("variables", "name", "message"),
    [
        ({"PROTECTION_HIBP_KEY": "secret"}, "PROTECTION_HIBP_KEY", "32 hexadecimal digits"),
        ({"PROTECTION_HIBP_KEY": "g" * 32}, "PROTECTION_HIBP_KEY", "32 hexadecimal digits"),
        (
            {"PROTECTION_HIBP_KEY": KEY, "PROTECTION_HIBP_URL": "http://hibp.example.org"},
            "PROTECTION_HIBP_URL",
            "unencrypted: use an https:// URL",
        ),
    ],
)
def test_wrong_settings_are_errors_at_the_start(monkeypatch, variables, name, message) -> None:
    for key, value in variables.items():
        monkeypatch.setenv(key, value)
    _settings, problems = ProtectionSettings.load()
    assert [problem.name for problem in problems] == [name]
    assert message in problems[0].message
    assert "secret" not in problems[0].message
    assert PlatformSettings.load()[1] == []


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("plain", "plain"),
        ("a &lt;b&gt; <br>c", "a <b> c"),
        ("<style>x{}</style></script>rest", "rest"),
        ("<" * 100_000, "<" * 4000),
        ("<b" * 100_000, "<b" * 2000),
    ],
)
def test_descriptions_are_plain_text(html: str, text: str) -> None:
    assert plain_text(html) == text
