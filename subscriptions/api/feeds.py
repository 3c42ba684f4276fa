"""feeds: a user's news feeds, whose addresses are shown once."""

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from subscriptions.api.gate import Needs, caller
from subscriptions.api.paging import Page, Paged, newest_first
from subscriptions.api.problems import Problem, not_found
from subscriptions.api.shapes import In, Out
from subscriptions.feeds import make_feed, revoke_feed
from subscriptions.models import Feed

router = Router(auth=Needs("feeds"))

LIVE = 50
"""Feeds that a user may have at once."""


class FeedIn(In):
    title: Annotated[str, Field(min_length=1, max_length=100, description="what readers show")] = (
        "Tailrace"
    )


class FeedOut(Out):
    id: int
    title: str
    created_at: datetime
    revoked_at: datetime | None


class FeedMade(FeedOut):
    address: str
    """Whoever knows it reads the feed. It is shown this once."""


@router.get("", response=Page[FeedOut], summary="One's feeds")
def list_feeds(request: HttpRequest, asked: Query[Paged]) -> Page[FeedOut]:
    """Newest first, the revoked ones too."""
    rows = Feed.objects.filter(user=caller(request).user)
    return newest_first(rows, asked, FeedOut.model_validate)


@router.post("", response={201: FeedMade}, summary="Make a feed")
def make(request: HttpRequest, body: FeedIn) -> FeedMade:
    user = caller(request).user
    if Feed.objects.filter(user=user, revoked_at=None).count() >= LIVE:
        raise Problem(409, f"you have {LIVE} feeds: revoke one first", kind="too-many")
    feed, address = make_feed(user, body.title)
    feed.refresh_from_db()
    return FeedMade(**FeedOut.model_validate(feed).model_dump(), address=address)


@router.delete("/{int:id}", response={204: None}, summary="Revoke a feed")
def revoke(request: HttpRequest, id: int) -> None:
    """Its address opens nothing any more; done again, it changes nothing."""
    feed = Feed.objects.filter(user=caller(request).user, pk=id).first()
    if feed is None:
        raise not_found("feed")
    revoke_feed(feed)
