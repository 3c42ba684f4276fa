"""API tokens: creation, expiry and revocation."""

import hashlib
from io import StringIO

import pytest
from django.core.management import CommandError

from tailrace.events.management.subcommands import call_subcommand
from tailrace.subscriptions.models import ApiToken
from tailrace.web.accounts import tokens
from tests.subscriptions.sample_domain import person

pytestmark = pytest.mark.django_db


def test_only_the_hash_of_a_token_is_stored() -> None:
    token, text = tokens.make(person("ann"), "ci", ["feeds"])
    assert text.startswith("tr_")
    assert len(text) == 3 + 43, "256 bits"
    assert token.token_hash == hashlib.sha256(text.encode()).hexdigest()
    result = tokens.find(text)
    assert result is not None
    assert (result, result.user.username) == (token, "ann")


def test_a_malformed_token_needs_no_query(django_assert_num_queries) -> None:
    with django_assert_num_queries(0):
        for text in ("", "tr_", "tr_" + "x" * 42, "x" * 46, "tr_" + "ü" * 43, "tr_" + "\0" * 43):
            assert tokens.find(text) is None
    assert tokens.find("tr_" + "x" * 43) is None


def test_a_token_expires(clock) -> None:
    _, text = tokens.make(person("ann"), "ci", ["feeds"], days=2)
    clock.step(2 * 86400 - 5)
    assert tokens.find(text) is not None
    clock.step(10)
    assert tokens.find(text) is None


def test_a_token_is_revoked_once(clock) -> None:
    token, text = tokens.make(person("ann"), "ci", ["feeds"])
    tokens.revoke(token)
    first = token.revoked_at
    clock.step(60)
    tokens.revoke(token)
    assert token.revoked_at == first
    assert tokens.find(text) is None
    assert tokens.active(token.user) == []


def test_tokens_of_an_inactive_user_are_invalid() -> None:
    ann = person("ann")
    _, text = tokens.make(ann, "ci", ["feeds"])
    ann.is_active = False
    ann.save()
    assert tokens.find(text) is None


def test_the_last_use_is_recorded_once_a_minute(clock, django_assert_num_queries) -> None:
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
    assert (token.last_used_at - first).total_seconds() == pytest.approx(70, abs=30)


@pytest.mark.parametrize(
    ("name", "scopes", "days", "why"),
    [
        ("ci", ["feed"], None, "did you mean 'feeds'"),
        ("ci", [], None, "needs a scope"),
        (" \n", ["feeds"], None, "needs a name"),
        ("ci", ["feeds"], 0, "between 1 and 36500"),
        ("ci", ["feeds"], -1, "between 1 and 36500"),
        ("ci", ["feeds"], 1e9, "between 1 and 36500"),
        ("ci", ["feeds"], float("nan"), "between 1 and 36500"),
    ],
)
def test_an_invalid_token_names_the_reason(name, scopes, days, why) -> None:
    with pytest.raises(tokens.WrongToken, match=why):
        tokens.make(person("ann"), name, scopes, days)
    assert not ApiToken.objects.exists()


def test_the_command_prints_the_token() -> None:
    person("ann")
    out = StringIO()
    call_subcommand("make_token", "ann", name="ci", scopes="feeds, inbox:read", days=3, stdout=out)
    token = tokens.find(out.getvalue().strip())
    assert token is not None
    assert (token.name, token.scopes) == ("ci", ["feeds", "inbox:read"])
    assert round((token.expires_at - token.created_at).total_seconds() / 86400, 3) == 3
    with pytest.raises(CommandError, match="did you mean 'ann'"):
        call_subcommand("make_token", "anna", name="ci", scopes="feeds")
    with pytest.raises(CommandError, match="did you mean 'feeds'"):
        call_subcommand("make_token", "ann", name="ci", scopes="feds")
