"""News feeds of a user. A feed's URL is shown only when the feed is created."""

from datetime import datetime

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from tailrace.subscriptions.channels.rss.feeds import make_feed, revoke_feed
from tailrace.subscriptions.models import Feed
from tailrace.web.api.auth import Needs, caller, require_recent_login
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import find_row
from tailrace.web.api.schemas import In, Out

router = Router(auth=Needs("feeds"))


class FeedIn(In):
    title: str = Field("Tailrace", min_length=1, max_length=100)
    """Shown by feed readers."""


class FeedOut(Out):
    id: int
    title: str
    created_at: datetime
    revoked_at: datetime | None


class FeedMade(FeedOut):
    address: str
    """The URL of the feed. Anyone with the URL can read the feed. It is shown only once."""


@router.get("", response=Page[FeedOut], summary="List your feeds")
def list_feeds(request: HttpRequest, params: Query[PageParams]) -> Page[FeedOut]:
    """Newest first, including revoked feeds."""
    rows = Feed.objects.filter(user=caller(request).user)
    return newest_first(rows, params, FeedOut.model_validate)


@router.post("", response={201: FeedMade}, summary="Create a feed")
def make(request: HttpRequest, body: FeedIn) -> FeedMade:
    require_recent_login(request)
    feed, address = make_feed(caller(request).user, body.title)
    feed.refresh_from_db()
    return FeedMade(**FeedOut.model_validate(feed).model_dump(), address=address)


@router.delete("/{int:id}", response={204: None}, summary="Revoke a feed")
def revoke(request: HttpRequest, id: int) -> None:
    """The feed's URL stops working. Safe to repeat."""
    revoke_feed(find_row(Feed.objects.filter(user=caller(request).user), id, "feed"))
