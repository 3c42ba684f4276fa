"""What the service of texts reports: believed if it is signed, and a dead number is let go."""

import base64
import hashlib
import hmac
from typing import Any
from urllib.parse import parse_qs

import pytest
from django.http import HttpResponse, QueryDict
from django.test import Client

from tailrace.db.query import database_now
from tailrace.subscriptions.channels.sms.callback import signature
from tailrace.subscriptions.channels.sms.service import text_request
from tailrace.subscriptions.models import Preferences
from tests.servers.sms import TOKEN
from tests.subscriptions.sample_domain import person

pytestmark = pytest.mark.django_db
NUMBER = "+4930123456"
SITE = "https://tailrace.example.org"


@pytest.fixture(autouse=True)
def _service(settings) -> None:
    settings.SMS_URL = "https://sms.example.org/2010-04-01/Accounts/AC1/Messages.json"
    settings.SMS_TOKEN, settings.SMS_FROM = TOKEN, "+4930000000"
    settings.PUBLIC_URL = SITE


def sent_now() -> str:
    """Text the number; return the path to which the service reports what became of it."""
    form = parse_qs(text_request(NUMBER, "hello", "key").body.decode())
    return form["StatusCallback"][0].removeprefix(SITE)


def report(
    form: dict[str, str],
    path: str | None = None,
    site: str = SITE,
    token: str = TOKEN,
    signed: str | None = None,
    **extra: Any,
) -> HttpResponse:
    """Send a report as the service does: signed with the token of the account. By default it is
    about a text that was sent just now."""
    path = sent_now() if path is None else path
    text = f"{site}{signed or path}" + "".join(name + form[name] for name in sorted(form))
    digest = hmac.new(token.encode(), text.encode(), hashlib.sha1).digest()
    headers = {"X-Twilio-Signature": base64.b64encode(digest).decode()} | extra
    return Client(enforce_csrf_checks=True).post(path, form, headers=headers)


def failed(code: int, status: str = "undelivered") -> dict[str, str]:
    return {
        "MessageSid": "SM1", "MessageStatus": status, "To": NUMBER, "ErrorCode": str(code),
        "AccountSid": "AC1",
    }  # fmt: skip


@pytest.fixture
def preferences() -> Preferences:
    return Preferences.objects.create(user=person("ann"), phone=NUMBER, confirmed_phone=NUMBER)


@pytest.mark.parametrize("code", [21610, 21211, 30006])
def test_a_number_that_gets_no_texts_is_used_no_more(preferences, code: int) -> None:
    assert report(failed(code)).status_code == 204
    preferences.refresh_from_db()
    assert (preferences.phone, preferences.confirmed_phone) == ("", "")
    assert report(failed(code)).status_code == 204, "and again"


@pytest.mark.parametrize("confirmed", [NUMBER, ""])
def test_an_old_report_that_is_sent_again_keeps_the_number(preferences, clock, confirmed) -> None:
    first = sent_now()
    assert report(failed(21610), first).status_code == 204
    clock.step(3600)
    preferences.refresh_from_db()
    preferences.phone, preferences.confirmed_phone = NUMBER, confirmed
    preferences.save()
    for form in (failed(21610), failed(30006, "failed")):
        assert report(form, first).status_code == 204, "it is signed, but too old"
    newer = f"/sms/status?sent_at={database_now().timestamp() + 60}"
    assert report(failed(21610), newer, signed=first).status_code == 403
    for path in ("/sms/status", "/sms/status?sent_at=nan", "/sms/status?sent_at=1e300"):
        assert report(failed(21610), path).status_code == 204, "it does not say of when it is"
    preferences.refresh_from_db()
    assert (preferences.phone, preferences.confirmed_phone) == (NUMBER, confirmed)
    clock.step(60)
    preferences.save()
    assert report(failed(21610), sent_now()).status_code == 204
    preferences.refresh_from_db()
    assert preferences.phone == "", "one on a text that was sent since"


def test_what_passes_and_what_was_delivered_changes_nothing(preferences) -> None:
    delivered = {"MessageSid": "SM1", "MessageStatus": "delivered", "To": NUMBER}
    for form in (failed(30003), delivered, {"MessageSid": "SM1"}):
        assert report(form).status_code == 204
    preferences.refresh_from_db()
    assert preferences.confirmed_phone == NUMBER


def test_a_forged_report_is_refused_and_changes_nothing(preferences) -> None:
    form = failed(21610)
    assert report(form, token="another").status_code == 403
    assert report(form, site="https://elsewhere.example.org").status_code == 403
    assert report(form, **{"X-Twilio-Signature": ""}).status_code == 403
    assert report(form, **{"X-Twilio-Signature": "ünknown"}).status_code == 403
    signed_for_another = report(form | {"To": "+1"})
    assert signed_for_another.status_code == 204
    preferences.refresh_from_db()
    assert preferences.confirmed_phone == NUMBER


def test_a_report_is_bounded_and_needs_a_service(settings) -> None:
    assert report({"Body": "x" * 20_000}).status_code == 413
    settings.SMS_URL = ""
    assert report(failed(21610)).status_code == 404


def test_the_signature_is_that_of_the_service_s_documentation(settings) -> None:
    """https://www.twilio.com/docs/usage/security: the example there."""
    settings.SMS_TOKEN = "12345"
    form = QueryDict(
        "Digits=1234&To=%2B18005551212&From=%2B14158675310&Caller=%2B14158675310"
        "&CallSid=CA1234567890ABCDE"
    )
    url = "https://example.com/myapp.php?foo=1&bar=2"
    assert signature(url, form) == "L/OH5YylLD5NRKLltdqwSvS0BnU="


def test_texts_name_where_to_report_if_the_service_can_reach_it(settings) -> None:
    assert b"StatusCallback=https%3A%2F%2Ftailrace.example.org%2Fsms%2Fstatus%3Fsent_at%3D" in (
        text_request(NUMBER, "hello", "key").body
    )
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    assert b"StatusCallback" not in text_request(NUMBER, "hello", "key").body
