"""My feeds, as a page."""

import re

import pytest
from django.test import Client

from subscriptions.feeds import make_feed
from subscriptions.models import Feed
from subscriptions.pages import my_feeds
from tests.subscriptions.browsing import Visitor, words
from tests.subscriptions.stage import person

pytestmark = pytest.mark.django_db
HERE = "/me/feeds"


@pytest.fixture
def ann() -> Visitor:
    return Visitor(person("ann"))


def test_a_feed_is_made_and_its_address_shown_once(ann: Visitor) -> None:
    answer = ann.post(HERE, {"title": "Mine & yours"})
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    found = re.search(r'id="secret"[^>]* value="([^"]+)"', answer.content.decode())
    assert found
    assert Client().get(found[1].removeprefix("http://127.0.0.1:8000")).status_code == 200
    token = found[1].rsplit("/", 1)[1].removesuffix(".atom")
    page = ann.get(HERE)
    assert token not in page.content.decode()
    assert "Mine & yours" in words(page)


@pytest.mark.parametrize(
    ("title", "told"),
    [("", "This field is required"), ("x" * 101, "at most 100"), ("a\0b", "Null characters")],
)
def test_what_is_wrong_is_said_and_nothing_made(ann: Visitor, title: str, told: str) -> None:
    answer = ann.post(HERE, {"title": title})
    assert answer.status_code == 422
    assert told in words(answer)
    assert not Feed.objects.exists()


def test_there_is_a_most(ann: Visitor, monkeypatch) -> None:
    monkeypatch.setattr(my_feeds, "LIVE", 1)
    assert ann.post(HERE, {"title": "one"}).status_code == 200
    assert "You have 1 feeds: revoke one first." in words(ann.post(HERE, {"title": "two"}))
    ann.post(f"{HERE}/{Feed.objects.get().pk}/revoke")
    assert ann.post(HERE, {"title": "two"}).status_code == 200


def test_a_revoked_feed_opens_nothing(ann: Visitor) -> None:
    assert ann.user is not None
    feed, address = make_feed(ann.user, "Mine")
    assert ann.post(f"{HERE}/{feed.pk}/revoke")["Location"] == HERE
    assert "The feed “Mine” is revoked" in ann.told(HERE)
    assert Client().get("/feeds/" + address.split("/feeds/")[1]).status_code == 404


def test_those_of_others_are_out_of_reach(ann: Visitor) -> None:
    feed, _address = make_feed(person("bob"), "Theirs")
    assert "Theirs" not in ann.told(HERE)
    assert ann.post(f"{HERE}/{feed.pk}/revoke").status_code == 404
    assert ann.post(f"{HERE}/{2**70}/revoke").status_code == 404
    feed.refresh_from_db()
    assert feed.revoked_at is None
