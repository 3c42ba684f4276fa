"""A stolen session: what it is good for, and how its owner gets rid of it."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.models import Endpoint
from tailrace.web.accounts import tokens
from tailrace.web.models import SecondFactor
from tailrace.web.pages import confirmation
from tests.security.accounts import OTHER, RIGHT, SETUP, entries, is_in, session, sign_in
from tests.web.program import problem
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db


@pytest.fixture
def stolen(ann, clock) -> Client:
    """A session whose user entered the password an hour ago."""
    client = session()
    clock.step(3600)
    return client


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/me/preferences/tokens", {"name": "ci", "scopes": "feeds", "days": "30"}),
        ("/me/feeds", {"title": "mine"}),
        ("/me/endpoints", {"url": "https://example.org/", "description": "x"}),
        (SETUP, {"code": "123456"}),
    ],
)
def test_a_stolen_session_makes_no_token_and_no_secret(ann, stolen, path, form) -> None:
    page = stolen.post(path, form)
    assert page.status_code == 403
    assert "Enter your password to continue" in words(page)
    for value in form.values():
        assert f'value="{value}"' in page.content.decode(), "what was entered is kept"
    wrong = stolen.post(path, {**form, "confirm_password": "wrong"})
    assert wrong.status_code == 422
    assert "wrong" not in wrong.content.decode()
    assert not ann.api_tokens.exists()
    assert not ann.feeds.exists()
    assert not Endpoint.objects.exists()
    assert not SecondFactor.objects.exists()


def test_the_owner_enters_the_password_once_for_ten_minutes(ann, stolen, clock) -> None:
    page = stolen.post("/me/feeds", {"title": "mine", "confirm_password": RIGHT})
    assert "It is shown only once" in words(page)
    assert RIGHT not in page.content.decode()
    clock.step(confirmation.VALID_SECONDS - 5)
    assert "It is shown only once" in words(stolen.post("/me/feeds", {"title": "two"}))
    clock.step(10)
    assert stolen.post("/me/feeds", {"title": "three"}).status_code == 403
    assert ann.feeds.count() == 2


def test_a_stolen_session_rotates_no_secret(ann, stolen) -> None:
    endpoint = Endpoint.objects.create(user=ann, url="https://example.org/", secret="x")
    assert stolen.post(f"/me/endpoints/{endpoint.pk}/rotate").status_code == 403
    endpoint.refresh_from_db()
    assert endpoint.secret == "x"


def test_a_stolen_session_makes_nothing_over_the_api_either(ann, stolen) -> None:
    stolen.get("/me/feeds")
    headers = {"X-CSRFToken": "x"}
    for path in ("/api/feeds", "/api/endpoints"):
        body = {"title": "x"} if path == "/api/feeds" else {"url": "https://example.org/"}
        answer = stolen.post(path, body, content_type="application/json", headers=headers)
        problem(answer, 403, "confirmation-required")
    assert not ann.feeds.exists()


def test_a_stolen_session_does_not_change_the_password(ann, stolen) -> None:
    form = {"old_password": "wrong", "new_password1": OTHER, "new_password2": OTHER}
    answers = [stolen.post("/accounts/password/change/", form) for _ in range(7)]
    assert "This is not your password" in words(answers[0])
    assert "Too many attempts" in words(answers[6])
    ann.refresh_from_db()
    assert ann.check_password(RIGHT)
    assert entries().count("login_failed") > 0


def test_staff_do_not_give_others_a_password_with_a_stolen_session(ann, clock) -> None:
    User.objects.filter(pk=ann.pk).update(is_staff=True, is_superuser=True)
    boss = User.objects.create_superuser("boss", password=RIGHT)
    client = session()
    clock.step(3600)
    form = {"usable_password": "true", "password1": OTHER, "password2": OTHER}
    page = f"/admin/auth/user/{boss.pk}/password/"
    assert client.post(page, form).status_code == 403
    assert client.post(page, {**form, "confirm_password": RIGHT}).status_code == 302
    boss.refresh_from_db()
    assert boss.check_password(OTHER)


def test_a_new_password_ends_the_sessions_of_a_thief(ann) -> None:
    thief, owner = session(), session()
    form = {"old_password": RIGHT, "new_password1": OTHER, "new_password2": OTHER}
    assert owner.post("/accounts/password/change/", form)["Location"] == "/me/account"
    assert (is_in(owner), is_in(thief)) == (True, False)
    assert sign_in(RIGHT).status_code == 200
    assert sign_in(OTHER).status_code == 302
    assert "password_changed" in entries()
    weak = {"old_password": OTHER, "new_password1": "12345678", "new_password2": "12345678"}
    assert owner.post("/accounts/password/change/", weak).status_code == 422


def test_signing_out_everywhere_ends_all_other_sessions_and_what_was_chosen(ann) -> None:
    _token, text = tokens.make(ann, "ci", ["feeds"])
    _feed, address = make_feed(ann)
    thief, owner = session(), session()
    path = "/accounts/sign-out-everywhere/"
    assert owner.post(path, {"password": "wrong"}).status_code == 422
    assert is_in(thief)
    assert owner.post(path, {"password": RIGHT}).status_code == 302
    assert (is_in(owner), is_in(thief)) == (True, False)
    assert tokens.find(text), "not chosen"
    assert owner.post(path, {"password": RIGHT, "keys": ["tokens", "feeds"]}).status_code == 302
    assert tokens.find(text) is None
    assert Client().get(address.partition("8000")[2]).status_code == 404
    assert sign_in().status_code == 302, "the password is the same"
    assert entries().count("signed_out_everywhere") == 2
    assert "password_changed" not in entries()


def test_the_page_of_the_account_shows_its_log_and_no_one_elses(ann) -> None:
    make_feed(ann, "mine")
    make_feed(User.objects.create_user("bob"), "theirs")
    page = Visitor(ann).text("/me/account")
    assert "A feed was created" in page
    assert "title: mine" in page
    assert "theirs" not in page
