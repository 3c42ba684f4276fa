"""What the service of texts reports: believed if it is signed, and a dead number is let go."""

import base64
import hashlib
import hmac
from typing import Any

import pytest
from django.http import HttpResponse, QueryDict
from django.test import Client

from subscriptions.channels.sms.callback import signature
from subscriptions.channels.sms.service import text_request
from subscriptions.models import Preferences
from tests.servers.sms import TOKEN
from tests.subscriptions.sample_domain import person

pytestmark = pytest.mark.django_db
NUMBER = "+4930123456"
URL = "https://tailrace.example.org/sms/status"


@pytest.fixture(autouse=True)
def _service(settings) -> None:
    settings.SMS_URL = "https://sms.example.org/2010-04-01/Accounts/AC1/Messages.json"
    settings.SMS_TOKEN, settings.SMS_FROM = TOKEN, "+4930000000"
    settings.PUBLIC_URL = "https://tailrace.example.org"


def report(form: dict[str, str], url: str = URL, token: str = TOKEN, **extra: Any) -> HttpResponse:
    """Send a report as the service does: signed with the token of the account."""
    text = url + "".join(name + form[name] for name in sorted(form))
    digest = hmac.new(token.encode(), text.encode(), hashlib.sha1).digest()
    headers = {"X-Twilio-Signature": base64.b64encode(digest).decode()} | extra
    return Client(enforce_csrf_checks=True).post("/sms/status", form, headers=headers)


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


def test_what_passes_and_what_was_delivered_changes_nothing(preferences) -> None:
    delivered = {"MessageSid": "SM1", "MessageStatus": "delivered", "To": NUMBER}
    for form in (failed(30003), delivered, {"MessageSid": "SM1"}):
        assert report(form).status_code == 204
    preferences.refresh_from_db()
    assert preferences.confirmed_phone == NUMBER


def test_a_forged_report_is_refused_and_changes_nothing(preferences) -> None:
    form = failed(21610)
    assert report(form, token="another").status_code == 403
    assert report(form, url="https://elsewhere.example.org/sms/status").status_code == 403
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
    assert b"StatusCallback=https%3A%2F%2Ftailrace.example.org%2Fsms%2Fstatus" in (
        text_request(NUMBER, "hello", "key").body
    )
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    assert b"StatusCallback" not in text_request(NUMBER, "hello", "key").body
