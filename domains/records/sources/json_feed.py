"""Read a JSON feed of records with a cursor.

GET <address>?cursor=<cursor>, at first without a cursor, returns a page:

    {"items": [{"id": "17", "updated": "2026-01-31T12:00:00Z", "deleted": false,
                "metadata": {"title": "...", "creators": ["..."], "language": "en"}}],
     "next": "c-18", "total": 240}

`next` is an opaque text. A page without items ends the pull: the next pull continues with `next` of
that page, or else with the cursor of the request. If `next` of a page with items is null, the feed
ends there, and the next pull begins at the first page. The status 410 means that the feed no longer
knows the cursor: the feed is read from the beginning.
"""

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from tailrace.domains.records.sources.fetch import fetch
from tailrace.domains.records.sources.formats import (
    MAX_IDENTIFIER,
    BadPage,
    HarvestedRecord,
    Page,
    SourceFormat,
)
from tailrace.domains.records.sources.token_trail import EndlessList, TokenTrail
from tailrace.events.publishing.validation import describe

GONE = 410
MAX_ITEMS = 5000
MAX_CURSOR = 4000
NO_NUL = r"^[^\x00]*$"
"""PostgreSQL cannot store NUL characters."""


class Item(BaseModel):
    """A record of the feed. Other keys are ignored."""

    id: Annotated[str, Field(min_length=1, max_length=MAX_IDENTIFIER, pattern=NO_NUL)]
    updated: AwareDatetime | None = None
    deleted: bool = False
    metadata: dict[str, Any] = Field(default_factory=dict)


class Feed(BaseModel):
    items: Annotated[list[Item], Field(max_length=MAX_ITEMS)]
    next: Annotated[str, Field(max_length=MAX_CURSOR, pattern=NO_NUL)] | None = None
    total: Annotated[int, Field(ge=0, lt=10**15)] | None = None


class Cursor(BaseModel):
    next: str = ""
    """The feed's cursor of the next page; empty: the first page."""
    trail: TokenTrail = Field(default_factory=TokenTrail)
    restarts: int = 0


class JsonFeed(SourceFormat):
    """A JSON feed of records with a cursor."""

    name = "json"
    label = "JSON feed"

    class Settings(BaseModel):
        model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

        cursor_parameter: str = Field("cursor", pattern=r"^[A-Za-z0-9_.\-]{1,50}$")
        """The name of the URL parameter for the cursor."""

    async def read(self, url: str, settings: Settings, cursor: Mapping[str, Any]) -> Page:
        at = Cursor.model_validate(cursor)
        params = [(settings.cursor_parameter, at.next)] if at.next else []
        answer = await fetch(
            url, params, accept="application/json", other_statuses=[GONE] if at.next else []
        )
        if answer.status == GONE:
            return _restarted(at)
        feed = await asyncio.to_thread(_parse, answer.body)
        records = [
            HarvestedRecord(
                item.id, item.updated, item.deleted, {} if item.deleted else item.metadata
            )
            for item in feed.items
        ]
        if not feed.items or not feed.next:
            after = "" if feed.next is None and feed.items else feed.next or at.next
            return Page(Cursor(next=after).model_dump(), records, is_last=True, total=feed.total)
        return Page(_continued(at, feed.next).model_dump(), records, total=feed.total)


def _parse(body: bytes) -> Feed:
    if not body.strip():
        raise BadPage("sent an empty response")
    if body.lstrip()[:1] == b"<":
        raise BadPage("sent a web page or XML, not JSON: check its address")
    try:
        return Feed.model_validate_json(body)
    except ValidationError as error:
        raise BadPage(f"sent JSON that is not a page of a feed: {describe(error)}") from None


def _continued(at: Cursor, token: str) -> Cursor:
    if token == at.next:
        message = (
            f"repeats itself: the page at the cursor {token[:80]!r} has the same cursor in `next`"
        )
        raise BadPage(message, {})
    try:
        return Cursor(next=token, trail=at.trail.add(token), restarts=at.restarts)
    except EndlessList as error:
        raise BadPage(str(error), {}) from None


def _restarted(at: Cursor) -> Page:
    if at.restarts:
        raise BadPage("does not accept its own cursors: it answered 410 twice", {})
    return Page(Cursor(restarts=1).model_dump())
