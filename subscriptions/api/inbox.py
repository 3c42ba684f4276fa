"""The inboxes of a user and of the user's groups."""

from datetime import datetime
from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import BaseModel, Field

from tailrace.db.pagination import page_of_rows
from tailrace.subscriptions.channels.web import inbox
from tailrace.subscriptions.models import InboxItem
from tailrace.subscriptions.notifications.rendering.event_summary import (
    EventSummary,
    recorded_events,
    summarize,
)
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Page, PageParams
from tailrace.web.api.problems import not_found
from tailrace.web.api.schemas import Out

router = Router()
READ, WRITE = Needs("inbox:read"), Needs("inbox:write")


class InboxParams(PageParams):
    unread: Annotated[bool, Field(description="only unread items")] = False


class InboxItemOut(Out):
    """The newest event about one thing."""

    id: int
    thing: str | None
    """What the events are about; null if `event` is null."""
    group: str | None
    """The group whose inbox contains the item; null for your own inbox."""
    role: str
    events: int
    """The number of events about this thing."""
    arrived_at: datetime
    read_at: datetime | None
    last_seen_at: datetime | None
    event: EventSummary | None
    """Null if the event was deleted, or if you may no longer read it."""


class UpTo(BaseModel):
    up_to: int | None = Field(
        None, ge=1, le=2**63 - 1, description="newest event seen; newer items stay unread"
    )


class Marked(Out):
    marked: int
    """The number of changed items."""


@router.get("", auth=READ, response=Page[InboxItemOut], summary="List inbox items")
def list_inbox(request: HttpRequest, params: Query[InboxParams]) -> Page[InboxItemOut]:
    """Newest first. An event that was deleted, or that you may no longer read, is null."""
    user = caller(request).user
    rows = inbox.of(user).select_related("group")
    if params.unread:
        rows = rows.filter(read_at=None)
    page, cursor = page_of_rows(rows, params.cursor, params.limit, "arrived_at")
    summaries = summarize(user, recorded_events(item.event_id for item in page))
    items = [_out(item, summaries.get(item.event_id)) for item in page]
    return Page(items=items, next=cursor or None)


@router.post("/read", auth=WRITE, response=Marked, summary="Mark all items as read")
def read_all(request: HttpRequest, params: Query[UpTo]) -> Marked:
    user = caller(request).user
    return Marked(marked=inbox.mark(user, None, read=True, up_to=params.up_to))


@router.post("/{int:id}/read", auth=WRITE, response=Marked, summary="Mark an item as read")
def read_one(request: HttpRequest, id: int, params: Query[UpTo]) -> Marked:
    return _mark(request, id, read=True, up_to=params.up_to)


@router.post("/{int:id}/unread", auth=WRITE, response=Marked, summary="Mark an item as unread")
def unread_one(request: HttpRequest, id: int) -> Marked:
    return _mark(request, id, read=False)


def _mark(request: HttpRequest, id: int, *, read: bool, up_to: int | None = None) -> Marked:
    user = caller(request).user
    if not inbox.of(user).filter(pk=id).exists():
        raise not_found("inbox item")
    return Marked(marked=inbox.mark(user, [id], read=read, up_to=up_to))


def _out(row: InboxItem, event: EventSummary | None) -> InboxItemOut:
    return InboxItemOut(
        id=row.pk,
        thing=row.thing if event else None,
        group=row.group.name if row.group else None,
        role=row.role,
        events=row.events,
        arrived_at=row.arrived_at,
        read_at=row.read_at,
        last_seen_at=row.last_seen_at,
        event=event,
    )
