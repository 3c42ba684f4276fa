"""A user's feed, as a feed reader gets it."""

from io import StringIO

import feedparser
import pytest
from defusedxml import ElementTree
from django.core.management import CommandError
from django.test import Client

from tailrace.db import clock as events_clock
from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.models import Event
from tailrace.events.readers import Readers
from tailrace.subscriptions.channels.rss.feeds import FEED_ITEMS, make_feed
from tailrace.subscriptions.invariants.notifications import (
    FeedsAreShort,
    NotificationsHaveTheirEvent,
)
from tailrace.subscriptions.models import Feed, FeedItem, Notification
from tests.subscriptions.sample_domain import (
    FIRST,
    assign_role,
    person,
    publish_event,
    readers,
)

pytestmark = pytest.mark.django_db(transaction=True)


def path_of(address: str) -> str:
    return "/feeds/" + address.split("/feeds/")[1]


@pytest.fixture
def feed(client: Client) -> str:
    """The path of ann's feed; ann holds the first role."""
    ann = person("ann")
    assign_role(FIRST, ann)
    return path_of(make_feed(ann)[1])


def test_a_reader_understands_it(client: Client, feed: str, run_jobs) -> None:
    publish_event(payload={"title": "Faust & <Gretchen>"}, actor="goethe")
    publish_event(payload={"title": "Hamlet"})
    run_jobs("subscriptions.notify", "subscriptions.rss")
    answer = client.get(feed)
    assert answer["Content-Type"].startswith("application/atom+xml")
    read = feedparser.parse(answer.content)
    assert not read.bozo
    assert read.version == "atom10"
    assert [entry.title for entry in read.entries] == [
        "A play was shown for the first time: Hamlet",
        "A play was shown for the first time: Faust & <Gretchen>",
    ]
    faust = read.entries[1]
    assert faust.author == "goethe"
    assert faust.tags[0].term == "stage.premiere"
    assert len({entry.id for entry in read.entries}) == 2
    (itself,) = [link for link in read.feed.links if link.rel == "self"]
    assert itself.href.endswith(feed), "readers go on from the address that a feed says it has"
    root = ElementTree.fromstring(answer.content)
    for needed in ("id", "title", "updated"):
        assert root.find(f"{{http://www.w3.org/2005/Atom}}{needed}") is not None


def test_it_is_rss_too(client: Client, feed: str, run_jobs) -> None:
    publish_event(payload={"title": "Faust & <Gretchen>"}, actor="goethe")
    run_jobs("subscriptions.notify", "subscriptions.rss")
    path = feed.replace(".atom", ".rss")
    answer = client.get(path)
    assert answer["Content-Type"].startswith("application/rss+xml")
    read = feedparser.parse(answer.content)
    assert not read.bozo
    assert read.version == "rss20"
    (entry,) = read.entries
    assert entry.title == "A play was shown for the first time: Faust & <Gretchen>"
    assert entry.author == "goethe"
    assert not entry.guidislink
    root = ElementTree.fromstring(answer.content)
    for needed in ("title", "link", "description"):  # RSS 2.0 asks for these
        assert root.find(f"channel/{needed}") is not None
    assert client.get(path, headers={"If-None-Match": answer["ETag"]}).status_code == 304


def test_what_may_not_be_read_any_more_is_left_out(client: Client, feed: str, run_jobs) -> None:
    publish_event(payload={"title": "Faust"})
    publish_event(payload={"title": "Hamlet"})
    run_jobs("subscriptions.notify", "subscriptions.rss")
    readers["Faust"] = Readers.of(["somebody"])
    titles = [entry.title for entry in feedparser.parse(client.get(feed).content).entries]
    assert titles == ["A play was shown for the first time: Hamlet"]


def test_an_empty_feed_is_a_feed(client: Client, feed: str) -> None:
    read = feedparser.parse(client.get(feed).content)
    assert not read.bozo
    assert read.entries == []


def test_characters_that_xml_forbids_do_not_break_it(client: Client, feed: str, run_jobs) -> None:
    publish_event(payload={"title": "Fa\x0bust\x01\ufffe"})
    run_jobs("subscriptions.notify", "subscriptions.rss")
    answer = client.get(feed)
    ElementTree.fromstring(answer.content)
    assert feedparser.parse(answer.content).entries[0].title.endswith("Fa ust") or "Faust" in (
        feedparser.parse(answer.content).entries[0].title
    )


def test_an_unchanged_feed_is_304_and_a_changed_one_is_not(
    client: Client, feed: str, run_jobs
) -> None:
    publish_event()
    run_jobs("subscriptions.notify", "subscriptions.rss")
    first = client.get(feed)
    again = client.get(feed, headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "private" in again["Cache-Control"]
    assert "private" in first["Cache-Control"]
    publish_event()
    run_jobs("subscriptions.notify", "subscriptions.rss")
    changed = client.get(feed, headers={"If-None-Match": first["ETag"]})
    assert changed.status_code == 200
    assert changed["ETag"] != first["ETag"]


def test_only_the_right_token_opens_it(client: Client, feed: str) -> None:
    token = feed.removesuffix(".atom").rsplit("/", 1)[1]
    for wrong in (token.swapcase(), token[:-1], token + "x", "x"):
        assert client.get(f"/feeds/me/{wrong}.atom").status_code == 404
    assert client.get(feed).status_code == 200
    assert client.post(feed).status_code == 405
    assert token not in str(Feed.objects.values())


def test_a_revoked_feed_and_that_of_someone_inactive_are_gone(client: Client, feed: str) -> None:
    row = Feed.objects.get()
    row.user.is_active = False
    row.user.save()
    assert client.get(feed).status_code == 404
    row.user.is_active = True
    row.user.save()
    assert client.get(feed).status_code == 200
    row.revoked_at = events_clock.now()
    row.save()
    assert client.get(feed).status_code == 404


def test_make_feed_prints_an_address_that_works(client: Client) -> None:
    person("ann")
    out = StringIO()
    call_subcommand("make_feed", "ann", stdout=out)
    assert client.get(path_of(out.getvalue().strip())).status_code == 200
    with pytest.raises(CommandError, match="did you mean 'ann'"):
        call_subcommand("make_feed", "anm", stdout=out)


def test_a_feed_keeps_its_newest_items_alone() -> None:
    ann, bob = person("ann"), person("bob")
    events = [publish_event() for _ in range(FEED_ITEMS + 5)]
    FeedItem.objects.bulk_create(
        FeedItem(user=ann, event_id=event.id, role=FIRST) for event in events
    )
    FeedItem.objects.create(user=bob, event_id=events[0].id, role=FIRST)
    invariant = FeedsAreShort()
    assert invariant.repair(invariant.find()) == 5
    assert list(invariant.find()) == []
    kept = FeedItem.objects.filter(user=ann).order_by("event_id").values_list("event_id", flat=True)
    assert list(kept) == [event.id for event in events[5:]]
    assert FeedItem.objects.filter(user=bob).count() == 1


def test_notifications_go_when_their_event_was_pruned() -> None:
    ann = person("ann")
    old, new = publish_event(), publish_event()
    for event in (old, new):
        Notification.objects.create(event_id=event.id, user=ann, role=FIRST)
        FeedItem.objects.create(event_id=event.id, user=ann, role=FIRST)
    invariant = NotificationsHaveTheirEvent()
    assert list(invariant.find()) == []
    Event.objects.filter(id=old.id).delete()
    assert invariant.repair(invariant.find()) == 2
    assert [row.event_id for row in Notification.objects.all()] == [new.id]
