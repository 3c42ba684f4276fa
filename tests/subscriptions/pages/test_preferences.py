"""The preferences page: preferences, blocked users, browsers, tokens."""

import base64
import json
import re
from datetime import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.http import HttpResponse
from django.test import Client

from tailrace.subscriptions.channels.push import vapid
from tailrace.subscriptions.models import ApiToken, Block, Device, Preferences
from tailrace.web.accounts import tokens
from tests.subscriptions.sample_domain import person
from tests.web.visitor import Visitor, confirm_session, words

pytestmark = pytest.mark.django_db
HERE = "/me/preferences"
GOOD = {
    "time_zone": "Europe/Berlin", "digest_at": "07:30", "digest_weekday": "4",
    "phone": "+4930123456",
}  # fmt: skip


@pytest.fixture
def ann() -> Visitor:
    return Visitor(person("ann"))


# --- when and where ---


def test_preferences_are_saved_and_shown(ann: Visitor) -> None:
    page = ann.get(HERE).content.decode()
    assert 'value="UTC"' in page
    assert 'value="08:00"' in page
    assert ann.post(HERE, GOOD)["Location"] == HERE
    row = Preferences.objects.get(user=ann.user)
    assert (row.time_zone, row.digest_at, row.digest_weekday, row.phone) == (
        "Europe/Berlin", time(7, 30), 4, "+4930123456",
    )  # fmt: skip
    answer = ann.get(HERE)
    assert "Saved." in words(answer)
    page = answer.content.decode()
    assert 'value="Europe/Berlin"' in page
    assert 'value="07:30"' in page
    assert re.search(r'value="4" selected', page)


@pytest.mark.parametrize(
    ("wrong", "page_text"),
    [
        ({"time_zone": "Europe/Atlantis"}, "'Europe/Atlantis' is not a time zone"),
        ({"time_zone": ""}, "This field is required"),
        ({"digest_at": "25:00"}, "Enter a valid time"),
        ({"digest_weekday": "7"}, "7 is not one of the available choices"),
        ({"phone": "030 123456"}, "a number such as +4930123456"),
    ],
)
def test_errors_are_shown_and_nothing_is_saved(
    ann: Visitor, wrong: dict[str, str], page_text: str
) -> None:
    ann.post(HERE, GOOD)
    answer = ann.post(HERE, {**GOOD, "digest_weekday": "1", **wrong})
    assert answer.status_code == 422
    assert page_text in words(answer)
    assert Preferences.objects.get().digest_weekday == 4


# --- blocks ---


def test_a_user_is_blocked_and_unblocked(ann: Visitor) -> None:
    bob = person("bob")
    for _again in range(2):
        assert ann.post(f"{HERE}/blocks", {"username": "bob"})["Location"] == HERE
    assert "You won't be notified about anything bob does." in ann.text(HERE)
    block = Block.objects.get(user=ann.user)
    assert block.blocked == bob
    ann.post(f"{HERE}/blocks/{block.pk}/remove")
    assert "bob is no longer blocked" in ann.text(HERE)
    assert not Block.objects.exists()


@pytest.mark.parametrize(
    ("login", "page_text"),
    [
        ("nobody", "There is no user called 'nobody'."),
        ("ann", "You cannot block yourself."),
        ("", "This field is required."),
        ("a\0", "Null characters are not allowed"),
    ],
)
def test_invalid_logins_cannot_be_blocked(ann: Visitor, login: str, page_text: str) -> None:
    answer = ann.post(f"{HERE}/blocks", {"username": login})
    assert answer.status_code == 422
    assert page_text in words(answer)
    assert not Block.objects.exists()


# --- browsers ---


def _subscription(**more: Any) -> dict[str, Any]:
    """What a browser's PushSubscription.toJSON() has."""
    public = ec.generate_private_key(ec.SECP256R1()).public_key()
    point = public.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    keys = {"p256dh": _text(point), "auth": _text(b"0123456789abcdef")}
    return {"endpoint": "https://push.example.org/send/1", "keys": keys, "name": "mine", **more}


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _add(visitor: Visitor, data: Any) -> HttpResponse:
    text = data if isinstance(data, str) else json.dumps(data)
    return visitor.post(f"{HERE}/devices", text, content_type="application/json")


def test_a_browser_is_added_and_removed(ann: Visitor) -> None:
    assert _add(ann, _subscription()).status_code == 201
    page_text = ann.text(HERE)
    assert "Push notifications are enabled in this browser." in page_text
    assert "mine added" in page_text
    device = Device.objects.get(user=ann.user)
    assert (device.url, device.name) == ("https://push.example.org/send/1", "mine")
    ann.post(f"{HERE}/devices/{device.pk}/remove")
    assert not Device.objects.exists()


@pytest.mark.parametrize(
    ("data", "page_text"),
    [
        (_subscription(endpoint="https://127.0.0.1:6379/"), "not a public address"),
        (_subscription(keys={"p256dh": "x", "auth": "y"}), "p256dh is not the key"),
        (_subscription(keys=[]), "p256dh is not the key"),
        ({}, "is not supported: use https"),
        ("no JSON", "is not supported: use https"),
        ("[" * 100_000, "is not supported: use https"),
    ],
)
def test_an_invalid_push_subscription_is_refused(ann: Visitor, data: Any, page_text: str) -> None:
    answer = _add(ann, data)
    assert answer.status_code == 422
    assert page_text in json.loads(answer.content)["error"]
    assert not Device.objects.exists()


def test_the_push_button_needs_configured_keys(ann: Visitor, settings) -> None:
    settings.VAPID_PRIVATE_KEY = settings.VAPID_SUBJECT = ""
    assert "Push notifications are not configured on this server." in ann.text(HERE)
    private, public = vapid.new_keys()
    settings.VAPID_PRIVATE_KEY, settings.VAPID_SUBJECT = private, "mailto:ops@example.org"
    page = ann.get(HERE).content.decode()
    assert f'data-key="{public}"' in page
    assert private not in page


# --- tokens ---


def _make(visitor: Visitor, **data: Any) -> HttpResponse:
    form = {"name": "cron", "scopes": ["inbox:read"], "days": "30", **data}
    return visitor.post(f"{HERE}/tokens", form)


def test_a_token_is_created_shown_once_and_revoked(ann: Visitor, clock) -> None:
    answer = _make(ann)
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    result = re.search(r'id="secret"[^>]* value="(tr_[^"]+)"', answer.content.decode())
    assert result
    headers = {"Authorization": f"Bearer {result[1]}"}
    assert Client().get("/api/inbox", headers=headers).status_code == 200
    assert Client().get("/api/feeds", headers=headers).status_code == 403
    page = ann.get(HERE)
    assert result[1] not in page.content.decode()
    assert "cron" in words(page)
    clock.step(31 * 86_400)
    assert Client().get("/api/inbox", headers=headers).status_code == 401

    confirm_session(ann.client)
    text = _make(ann, days="").content.decode()
    token = ApiToken.objects.get(expires_at=None)
    assert ann.post(f"{HERE}/tokens/{token.pk}/revoke")["Location"] == HERE
    forever = re.search(r'value="(tr_[^"]+)"', text)
    assert forever
    assert tokens.find(forever[1]) is None


@pytest.mark.parametrize(
    ("wrong", "page_text"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "\u2028"}, "required"),
        ({"scopes": []}, "Choose at least one scope."),
        ({"scopes": ["everything"]}, "everything is not one of the available choices"),
        ({"days": "10000"}, "10000 is not one of the available choices"),
    ],
)
def test_an_invalid_token_form_is_refused(
    ann: Visitor, wrong: dict[str, Any], page_text: str
) -> None:
    answer = _make(ann, **wrong)
    assert answer.status_code == 422
    assert page_text in words(answer)
    assert not ApiToken.objects.exists()


def test_the_number_is_limited(ann: Visitor, monkeypatch) -> None:
    monkeypatch.setattr(tokens, "MAX_TOKENS", 1)
    assert _make(ann).status_code == 200
    assert "already has 1 tokens: revoke one first." in words(_make(ann))


def test_rows_of_other_users_are_not_found(ann: Visitor) -> None:
    bob = person("bob")
    block = Block.objects.create(user=bob, blocked=person("eve"))
    device = Device.objects.create(user=bob, url="https://push.example.org/2", name="theirs")
    token, _text = tokens.make(bob, "their program", ["feeds"])
    page_text = ann.text(HERE)
    assert "theirs" not in page_text
    assert "their program" not in page_text
    for path in (f"blocks/{block.pk}/remove", f"devices/{device.pk}/remove"):
        assert ann.post(f"{HERE}/{path}").status_code == 404
    assert ann.post(f"{HERE}/tokens/{token.pk}/revoke").status_code == 404
    assert Block.objects.exists()
    assert Device.objects.exists()
    token.refresh_from_db()
    assert token.revoked_at is None
