"""Tokens: what they open, and when they open nothing any more."""

import hashlib
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from subscriptions import tokens
from subscriptions.models import ApiToken
from tests.subscriptions.stage import person

pytestmark = pytest.mark.django_db


def test_a_token_is_shown_once_and_only_its_hash_is_kept() -> None:
    token, text = tokens.make(person("ann"), "ci", ["feeds"])
    assert text.startswith("tr_")
    assert len(text) == 3 + 43, "256 bits"
    assert token.token_hash == hashlib.sha256(text.encode()).hexdigest()
    found = tokens.find(text)
    assert found is not None
    assert (found, found.user.username) == (token, "ann")


def test_what_is_no_token_opens_nothing_and_asks_nothing(django_assert_num_queries) -> None:
    with django_assert_num_queries(0):
        for text in ("", "tr_", "tr_" + "x" * 42, "x" * 46, "tr_" + "ü" * 43, "tr_" + "\0" * 43):
            assert tokens.find(text) is None
    assert tokens.find("tr_" + "x" * 43) is None


def test_it_expires(clock) -> None:
    _, text = tokens.make(person("ann"), "ci", ["feeds"], days=2)
    clock.step(2 * 86400 - 5)
    assert tokens.find(text) is not None
    clock.step(10)
    assert tokens.find(text) is None


def test_revoked_it_opens_nothing_and_stays_revoked_since_then(clock) -> None:
    token, text = tokens.make(person("ann"), "ci", ["feeds"])
    tokens.revoke(token)
    first = token.revoked_at
    clock.step(60)
    tokens.revoke(token)
    assert token.revoked_at == first
    assert tokens.find(text) is None
    assert tokens.live(token.user) == []


def test_those_of_an_inactive_user_open_nothing() -> None:
    ann = person("ann")
    _, text = tokens.make(ann, "ci", ["feeds"])
    ann.is_active = False
    ann.save()
    assert tokens.find(text) is None


def test_its_last_use_is_noted_once_a_minute(clock, django_assert_num_queries) -> None:
    token, text = tokens.make(person("ann"), "ci", ["feeds"])
    tokens.find(text)
    token.refresh_from_db()
    first = token.last_used_at
    assert first is not None
    clock.step(50)
    with django_assert_num_queries(1):
        tokens.find(text)
    token.refresh_from_db()
    assert token.last_used_at == first
    clock.step(20)
    tokens.find(text)
    token.refresh_from_db()
    assert (token.last_used_at - first).total_seconds() == pytest.approx(70, abs=5)


@pytest.mark.parametrize(
    ("name", "scopes", "days", "why"),
    [
        ("ci", ["feed"], None, "did you mean 'feeds'"),
        ("ci", [], None, "needs a scope"),
        (" \n", ["feeds"], None, "needs a name"),
        ("ci", ["feeds"], 0, "more than 0"),
        ("ci", ["feeds"], -1, "more than 0"),
        ("ci", ["feeds"], 1e9, "36500 at most"),
        ("ci", ["feeds"], float("nan"), "more than 0"),
    ],
)
def test_what_cannot_be_made_says_why(name, scopes, days, why) -> None:
    with pytest.raises(tokens.WrongToken, match=why):
        tokens.make(person("ann"), name, scopes, days)
    assert not ApiToken.objects.exists()


def test_the_command_prints_it() -> None:
    person("ann")
    out = StringIO()
    call_command("make_token", "ann", name="ci", scopes="feeds, inbox:read", days=3, stdout=out)
    token = tokens.find(out.getvalue().strip())
    assert token is not None
    assert (token.name, token.scopes) == ("ci", ["feeds", "inbox:read"])
    assert round((token.expires_at - token.created_at).total_seconds() / 86400, 3) == 3
    with pytest.raises(CommandError, match="did you mean 'ann'"):
        call_command("make_token", "anna", name="ci", scopes="feeds")
    with pytest.raises(CommandError, match="did you mean 'feeds'"):
        call_command("make_token", "ann", name="ci", scopes="feds")
