"""The feeds as Atom and RSS documents."""

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

from tailrace.events.privacy.visibility import may_read
from tailrace.events.publish import Recorded
from tailrace.net.sanitize import one_line
from tailrace.subscriptions.channels.rss.feeds import FEED_ITEMS, find_feed
from tailrace.subscriptions.models import Feed, FeedItem
from tailrace.subscriptions.notifications.rendering.event_text import EventText, render_event
from tailrace.web.pages.frame import for_everybody


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of a feed, with the text of its event."""

    item: FeedItem
    event_text: EventText


class MyFeed(SyndicationFeed):
    """A feed's newest items as Atom."""

    feed_type: Any = Atom1Feed

    def __init__(self, feed: Feed, address: str) -> None:
        """Take the feed and its URL, which contains the token: the token is not stored."""
        self.feed, self.address = feed, address

    def title(self) -> str:
        return one_line(f"{self.feed.title} of {self.feed.user.get_username()}")

    def link(self) -> str:
        return f"{settings.PUBLIC_URL}/"

    def feed_url(self) -> str:
        return self.address

    def feed_guid(self) -> str:
        return _tag(f"feed/{self.feed.pk}", self.feed.created_at)

    def items(self) -> list[Entry]:
        rows = FeedItem.objects.filter(user=self.feed.user_id).select_related("event")
        items = list(rows.order_by("-event_id")[:FEED_ITEMS])
        events = {item.event_id: Recorded.from_model(item.event) for item in items}
        readable = may_read(self.feed.user, events.values())
        return [
            Entry(item, render_event(events[item.event_id]))
            for item in items
            if item.event_id in readable
        ]

    def item_title(self, entry: Entry) -> str:
        return entry.event_text.title

    def item_description(self, entry: Entry) -> str:
        return entry.event_text.html

    def item_link(self, entry: Entry) -> str:
        return entry.event_text.link or f"{settings.PUBLIC_URL}/"

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
    """A feed's newest items as RSS 2.0."""

    feed_type = Rss201rev2Feed
    item_guid_is_permalink = False

    def description(self) -> str:
        return one_line(f"Notifications of {self.feed.user.get_username()}")


_FORMATS = {"atom": MyFeed, "rss": MyRssFeed}


@require_safe
@for_everybody
def my_feed(request: HttpRequest, token: str, form: str) -> HttpResponseBase:
    """GET /feeds/me/TOKEN.atom or .rss: 200, 304 by its ETag, or 404 if the token is invalid."""
    feed = find_feed(token)
    if feed is None:
        raise Http404
    response = _FORMATS[form](feed, settings.PUBLIC_URL + request.path)(request)
    etag = f'"{hashlib.sha256(response.content).hexdigest()[:32]}"'
    response["ETag"] = etag
    result: HttpResponseBase = (
        get_conditional_response(request, etag=etag, response=response) or response
    )
    del result["Last-Modified"]
    patch_cache_control(result, private=True, no_cache=True)
    result["X-Robots-Tag"] = "noindex"
    result["Referrer-Policy"] = "no-referrer"
    return result


def _tag(name: str, day: datetime) -> str:
    """Return a tag URI (RFC 4151)."""
    host = urlsplit(settings.PUBLIC_URL).hostname or "localhost"
    return f"tag:{host},{day:%Y-%m-%d}:{name}"
