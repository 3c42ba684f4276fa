"""The page of feeds."""

import re

import pytest
from django.test import Client

from tailrace.subscriptions.channels.rss import feeds as rss_feeds
from tailrace.subscriptions.channels.rss.feeds import make_feed
from tailrace.subscriptions.models import Feed
from tailrace.subscriptions.pages import feeds
from tests.subscriptions.sample_domain import person
from tests.web.visitor import Visitor, words

pytestmark = pytest.mark.django_db
HERE = "/me/feeds"


@pytest.fixture
def ann() -> Visitor:
    return Visitor(person("ann"))


def test_a_feed_is_created_and_its_address_shown_once(ann: Visitor) -> None:
    answer = ann.post(HERE, {"title": "Mine & yours"})
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    result = re.search(r'id="secret"[^>]* value="([^"]+)"', answer.content.decode())
    assert result
    assert Client().get(result[1].removeprefix("http://127.0.0.1:8000")).status_code == 200
    token = result[1].rsplit("/", 1)[1].removesuffix(".atom")
    page = ann.get(HERE)
    assert token not in page.content.decode()
    assert "Mine & yours" in words(page)


@pytest.mark.parametrize(
    ("title", "page_text"),
    [("", "This field is required"), ("x" * 101, "at most 100"), ("a\0b", "Null characters")],
)
def test_errors_are_shown_and_nothing_is_created(ann: Visitor, title: str, page_text: str) -> None:
    answer = ann.post(HERE, {"title": title})
    assert answer.status_code == 422
    assert page_text in words(answer)
    assert not Feed.objects.exists()


def test_the_number_is_limited(ann: Visitor, monkeypatch) -> None:
    for module in (feeds, rss_feeds):
        monkeypatch.setattr(module, "MAX_FEEDS", 1)
    assert ann.post(HERE, {"title": "one"}).status_code == 200
    assert "You already have 1 feeds. Revoke one first." in words(ann.post(HERE, {"title": "two"}))
    ann.post(f"{HERE}/{Feed.objects.get().pk}/revoke")
    assert ann.post(HERE, {"title": "two"}).status_code == 200


def test_a_revoked_feed_is_not_found(ann: Visitor) -> None:
    assert ann.user is not None
    feed, address = make_feed(ann.user, "Mine")
    assert ann.post(f"{HERE}/{feed.pk}/revoke")["Location"] == HERE
    assert "The feed “Mine” is revoked" in ann.text(HERE)
    assert Client().get("/feeds/" + address.split("/feeds/")[1]).status_code == 404


def test_rows_of_other_users_are_not_found(ann: Visitor) -> None:
    feed, _address = make_feed(person("bob"), "Theirs")
    assert "Theirs" not in ann.text(HERE)
    assert ann.post(f"{HERE}/{feed.pk}/revoke").status_code == 404
    assert ann.post(f"{HERE}/{2**70}/revoke").status_code == 404
    feed.refresh_from_db()
    assert feed.revoked_at is None
