"""Feeds in JSON are read from their cursor on."""

import pytest

from tailrace.domains.records.models import Deposition, Source
from tests.servers.web import Response

pytestmark = pytest.mark.django_db(transaction=True)


def fill(feed, count: int, first: int = 0) -> None:
    for number in range(first, first + count):
        feed.add(str(number), title=f"Series {number}", creators=["Novak, Ana"])


def test_a_feed_is_read_on_from_its_cursor(feed, json_source, pull) -> None:
    fill(feed, 25)
    assert pull(json_source).result == {"read": 25, "submitted": 25}
    assert feed.requests == ["", "10", "20", "25"]
    fill(feed, 2, first=24)
    feed.delete("3")
    feed.requests.clear()
    assert pull(json_source).result["submitted"] == 2, "item 24 is as it was"
    assert feed.requests == ["25", "28"]
    assert Deposition.objects.get(is_deleted=True).identifier == "feed:3"
    assert Deposition.objects.filter(identifier="feed:25").count() == 1


def test_a_forgotten_cursor_begins_the_feed_again(feed, json_source, pull) -> None:
    fill(feed, 15)
    pull(json_source)
    feed.oldest_cursor = 16
    feed.items.append({"id": "new", "metadata": {"title": "New", "creators": ["x"]}})
    feed.page_size = 100
    assert pull(json_source).result["submitted"] == 1


def test_a_feed_with_an_end_is_read_anew(feed, json_source, pull) -> None:
    feed.before = lambda request: Response(200, b'{"items": [{"id": "1"}], "next": null}')
    assert pull(json_source).result == {"read": 1, "submitted": 1}
    assert pull(json_source).result == {"read": 1, "submitted": 0}
    assert feed.requests == ["", ""]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "sent an empty response"),
        (b"<!doctype html><p>Sign in", "sent a web page or XML, not JSON"),
        (b'{"items": [{"id": "1"}', "sent JSON that is not a page of a feed"),
        (b"[" * 100_000, "sent JSON that is not a page of a feed"),
        (b'{"items": [{"metadata": {}}]}', "items.0.id"),
        (b'{"items": [{"id": "a\\u0000"}]}', "items.0.id"),
        (b'{"items": [], "next": "a\\u0000"}', "next"),
        (b'{"items": [{"id": "1"}], "next": "7"}', "has the same cursor in `next`"),
    ],
)
def test_what_cannot_be_read_is_named(feed, json_source, pull, body, message) -> None:
    Source.objects.filter(pk=json_source.pk).update(cursor={"next": "7"})
    feed.before = lambda request: Response(200, body)
    pull(json_source)
    assert message in json_source.last_error
    assert Deposition.objects.count() == 0
    assert len(feed.requests) == 1


def test_cursors_in_a_circle_end_the_pull(feed, json_source, pull) -> None:
    feed.before = lambda request: Response(
        200, b'{"items": [{"id": "1"}], "next": "%d"}' % (len(feed.requests) % 5)
    )
    pull(json_source)
    assert "repeats itself" in json_source.last_error
    assert len(feed.requests) < 30
