"""views: the page that feed readers ask for."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.syndication.views import Feed as SyndicationFeed
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils.cache import get_conditional_response, patch_cache_control
from django.utils.feedgenerator import Atom1Feed, Rss201rev2Feed
from django.views.decorators.http import require_safe

from subscriptions.feeds import find_feed
from subscriptions.invariants import FEED_ITEMS
from subscriptions.models import Feed, FeedItem
from subscriptions.readable import may_read
from subscriptions.recall import recall
from subscriptions.story import Story, tell
from subscriptions.text import one_line


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a feed, with its event put into words."""

    item: FeedItem
    story: Story


@dataclass(frozen=True, slots=True)
class Opened:
    """A feed, and the address by which it was opened: only who knows the token sees it again."""

    feed: Feed
    address: str


class MyFeed(SyndicationFeed):
    """A feed's newest items as Atom."""

    feed_type: Any = Atom1Feed

    def get_object(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Opened:
        return Opened(kwargs["feed"], settings.PUBLIC_URL + request.path)

    def title(self, opened: Opened) -> str:
        return one_line(f"{opened.feed.title} of {opened.feed.user.get_username()}")

    def link(self, opened: Opened) -> str:
        return f"{settings.PUBLIC_URL}/"

    def feed_url(self, opened: Opened) -> str:
        return opened.address

    def feed_guid(self, opened: Opened) -> str:
        return _tag(f"feed/{opened.feed.pk}", opened.feed.created_at)

    def items(self, opened: Opened) -> list[Entry]:
        items = list(
            FeedItem.objects.filter(user=opened.feed.user_id)
            .select_related("event")
            .order_by("-event_id")[:FEED_ITEMS]
        )
        events = {item.event_id: recall(item.event) for item in items}
        readable = may_read(opened.feed.user, events.values())
        return [
            Entry(item, tell(events[item.event_id])) for item in items if item.event_id in readable
        ]

    def item_title(self, entry: Entry) -> str:
        return entry.story.title

    def item_description(self, entry: Entry) -> str:
        return entry.story.html

    def item_link(self, entry: Entry) -> str:
        return entry.story.link or f"{settings.PUBLIC_URL}/"

    def item_guid(self, entry: Entry) -> str:
        return _tag(f"event/{entry.item.event_id}", entry.item.event.recorded_at)

    def item_pubdate(self, entry: Entry) -> datetime:
        return entry.item.event.occurred_at

    def item_updateddate(self, entry: Entry) -> datetime:
        return entry.item.created_at

    def item_author_name(self, entry: Entry) -> str:
        return one_line(entry.item.event.actor) or "Tailrace"

    def item_categories(self, entry: Entry) -> list[str]:
        return [entry.item.event.type]


class MyRssFeed(MyFeed):
    """The same as RSS 2.0."""

    feed_type = Rss201rev2Feed
    item_guid_is_permalink = False

    def description(self, opened: Opened) -> str:
        return one_line(f"What {opened.feed.user.get_username()} is told of")


_FORMS = {"atom": MyFeed(), "rss": MyRssFeed()}


@require_safe
def my_feed(request: HttpRequest, token: str, form: str) -> HttpResponseBase:
    """GET /feeds/me/TOKEN.atom or .rss: 200, 304 by its ETag, or 404 if the token opens nothing."""
    feed = find_feed(token)
    if feed is None:
        raise Http404
    answer = _FORMS[form](request, feed=feed)
    etag = f'"{hashlib.sha256(answer.content).hexdigest()[:32]}"'
    answer["ETag"] = etag
    result: HttpResponseBase = (
        get_conditional_response(request, etag=etag, response=answer) or answer
    )
    del result["Last-Modified"]
    patch_cache_control(result, private=True, no_cache=True)
    result["X-Robots-Tag"] = "noindex"
    result["Referrer-Policy"] = "no-referrer"
    return result


def _tag(what: str, day: datetime) -> str:
    """Return an id that stays when the address of the site changes (RFC 4151)."""
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    return f"tag:{host},{day:%Y-%m-%d}:{what}"
