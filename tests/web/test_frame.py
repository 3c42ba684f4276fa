"""Access to the pages of a person, their frame, and signing in and out."""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse

from tailrace.subscriptions.models import InboxItem, Preferences
from tailrace.subscriptions.pages.urls import signed_in
from tests.subscriptions.sample_domain import FIRST, person, publish_event
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
PAGES = ("subscriptions", "inbox", "feeds", "endpoints", "preferences")


def _flat(patterns: Iterable[Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield the address and the name of each page, of included lists, too."""
    for each in patterns:
        address = before + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from _flat(each.url_patterns, address)
        else:
            yield address, each.name


PAGES_OF_USERS = dict(_flat(signed_in))
OURS = ["me/", *PAGES_OF_USERS]


def _path(pattern: str) -> str:
    return "/" + re.sub(r"<int:\w+>", "1", pattern)


@pytest.fixture
def ann() -> Visitor:
    return Visitor(person("ann"))


@pytest.mark.parametrize("pattern", OURS)
def test_an_anonymous_visitor_is_sent_to_the_login(pattern: str) -> None:
    client, path = Client(), _path(pattern)
    answers = [client.get(path), client.post(path)]
    redirects = [answer for answer in answers if answer.status_code == 302]
    assert redirects
    assert {answer.status_code for answer in answers} <= {302, 405}
    for answer in redirects:
        assert answer["Location"].startswith(("/accounts/login/?next=/me/", "/me/subscriptions"))
    assert client.get("/me/inbox?unread")["Location"] == "/accounts/login/?next=/me/inbox%3Funread"


def test_a_page_whose_session_ended_is_reloaded() -> None:
    answer = Client().get("/me/inbox/count", headers={"HX-Request": "true"})
    assert (answer.status_code, answer["HX-Refresh"]) == (401, "true")


@pytest.mark.parametrize("page", PAGES)
def test_each_page_is_for_all_users_and_not_cached(page: str, ann: Visitor) -> None:
    answer = ann.get(f"/me/{page}")
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    text = answer.content.decode()
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=", text), "the policy"
    assert text.count('aria-current="page"') == 1
    assert "Overview" not in words(answer)


@pytest.mark.parametrize("page", PAGES)
def test_headings_are_in_order_and_inputs_have_labels(page: str, ann: Visitor) -> None:
    text = ann.get(f"/me/{page}").content.decode()
    levels = [int(level) for level in re.findall(r"<h([1-6])", text)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    labelled = set(re.findall(r'<label[^>]* for="([^"]+)"', text))
    inside = "".join(re.findall(r"<label(?![^>]* for=).*?</label>", text, re.DOTALL))
    for field in re.findall(r"<(?:input|select|textarea)\b[^>]*>", text):
        if 'type="hidden"' in field or field in inside:
            continue
        id = re.search(r'\bid="([^"]+)"', field)
        assert id, f"{field} has neither an id nor a label around it"
        assert id[1] in labelled, f"no label for {field}"
    ids = re.findall(r'\sid="([^"]+)"', text)
    assert len(ids) == len(set(ids))


def test_every_change_needs_the_csrf_token(ann: Visitor) -> None:
    changes = [path for path in OURS if path != "me/"]
    for pattern in changes:
        answer = ann.client.post(_path(pattern))
        assert answer.status_code in (403, 405), pattern


def test_staff_go_to_and_from_the_overview() -> None:
    staff = person("boss")
    staff.is_staff = True
    staff.save()
    visitor = Visitor(staff)
    assert 'href="/"' in visitor.get("/me/feeds").content.decode()
    assert 'href="/me/"' in visitor.get("/").content.decode()


def test_the_unread_count_is_on_each_page(ann: Visitor) -> None:
    assert ann.user is not None
    for number in range(3):
        event = publish_event(payload={"title": str(number)})
        InboxItem.objects.create(user=ann.user, thing=str(number), event_id=event.id, role=FIRST)
    assert "Inbox 3 unread" in ann.text("/me/feeds")
    assert words(ann.get("/me/inbox/count")) == "3 unread"
    other = event.id
    InboxItem.objects.bulk_create(
        InboxItem(user=ann.user, thing=f"more {number}", event_id=other, role=FIRST)
        for number in range(100)
    )
    assert words(ann.get("/me/inbox/count")) == "99+ unread"


def test_times_are_those_of_the_persons_zone(ann: Visitor) -> None:
    event = publish_event()
    InboxItem.objects.create(
        user=ann.user, thing="x", event_id=event.id, role=FIRST, arrived_at="2026-07-01T12:00Z"
    )
    assert "2026-07-01 12:00:00 UTC" in ann.get("/me/inbox").content.decode()
    Preferences.objects.create(user=ann.user, time_zone="Asia/Tokyo")
    assert "2026-07-01 21:00:00 JST" in ann.get("/me/inbox").content.decode()
    Preferences.objects.update(time_zone="Gone/Away")
    assert "2026-07-01 12:00:00 UTC" in ann.get("/me/inbox").content.decode()


# --- in and out ---


def _sign_in(client: Client, **more: str) -> str:
    form = {"username": "ann", "password": "a long password", **more}
    answer = client.post("/accounts/login/", form)
    assert answer.status_code == 302, words(answer)
    return str(answer["Location"])


def test_a_user_signs_in_and_out() -> None:
    user = User.objects.create_user("ann", password="a long password")
    assert words(Client().get("/accounts/login/")).count("Sign in") >= 2
    client = Client()
    assert _sign_in(client) == "/me/"
    assert client.get("/me/").headers["Location"] == "/me/subscriptions"
    assert client.get("/accounts/login/")["Location"] == "/me/", "there is nothing to do there"
    assert client.get("/accounts/logout/").status_code == 405
    answer = client.get("/accounts/logout/", headers={"Accept": "text/html,*/*"})
    assert (answer.status_code, answer["Allow"]) == (405, "POST, OPTIONS")
    assert "This page cannot be opened directly" in answer.content.decode(), "a browser gets a page"
    assert client.post("/accounts/logout/")["Location"] == "/accounts/login/"
    assert client.get("/me/feeds").status_code == 302
    assert _sign_in(client, next="/me/inbox") == "/me/inbox"
    assert _sign_in(Client(), next="https://evil.example/") == "/me/"
    user.is_staff = True
    user.save()
    assert _sign_in(Client()) == "/"


def test_a_wrong_password_and_an_inactive_person_stay_out() -> None:
    user = User.objects.create_user("ann", password="a long password")
    client = Client()
    answer = client.post("/accounts/login/", {"username": "ann", "password": "another"})
    assert answer.status_code == 200
    assert "Please enter a correct username and password" in words(answer)
    assert "another" not in answer.content.decode()
    _sign_in(client)
    user.is_active = False
    user.save()
    assert client.get("/me/feeds").status_code == 302


def test_the_names_of_all_pages_are_known() -> None:
    names = {*PAGES_OF_USERS.values(), "login", "logout", "me"}
    assert names <= {key for key in get_resolver().reverse_dict if isinstance(key, str)}
    assert reverse("login") == "/accounts/login/"
