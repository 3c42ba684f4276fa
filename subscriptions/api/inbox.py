"""inbox: what stands in the inboxes of a user and of the user's groups."""

from datetime import datetime
from typing import Annotated

from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest
from ninja import Query, Router
from pydantic import BaseModel, Field

from subscriptions import inbox
from subscriptions.api.briefs import EventBrief, briefs_of
from subscriptions.api.gate import Needs, caller
from subscriptions.api.paging import NOT_OURS, Page, Paged, decode, encode, page_of
from subscriptions.api.problems import not_found, wrong_parameter
from subscriptions.api.shapes import Out
from subscriptions.models import InboxItem

router = Router()
READ, WRITE = Needs("inbox:read"), Needs("inbox:write")


class InboxAsked(Paged):
    unread: Annotated[bool, Field(description="only what is unread")] = False


class InboxItemOut(Out):
    """The newest event on one thing."""

    id: int
    thing: str | None
    """What its events have in common; null where the event is."""
    group: str | None
    """The group in whose inbox it stands; null: one's own."""
    role: str
    events: int
    """How many there were on this thing."""
    arrived_at: datetime
    read_at: datetime | None
    last_seen_at: datetime | None
    event: EventBrief | None
    """Null if it is gone, or not to be read of any more."""


class UpTo(BaseModel):
    up_to: Annotated[
        int | None,
        Field(ge=1, le=2**63 - 1, description="the event that was seen: newer stays unread"),
    ] = None


class Marked(Out):
    marked: int
    """How many were not so before."""


@router.get("", auth=READ, response=Page[InboxItemOut], summary="What stands there")
def list_inbox(request: HttpRequest, asked: Query[InboxAsked]) -> Page[InboxItemOut]:
    """Newest first. An event that is gone, or that one may not read of any more, is null."""
    user = caller(request).user
    rows = inbox.of(user).select_related("group")
    if asked.unread:
        rows = rows.filter(read_at=None)
    if asked.cursor is not None:
        at, id = _key(asked.cursor)
        rows = rows.filter(Q(arrived_at__lt=at) | Q(arrived_at=at, pk__lt=id))
    found = list(rows[: asked.limit + 1])
    lines = briefs_of(user, (row.event_id for row in found))
    return page_of(found, asked, lambda row: _out(row, lines.get(row.event_id)), _cursor)


@router.post("/read", auth=WRITE, response=Marked, summary="Mark all as read")
def read_all(request: HttpRequest, asked: Query[UpTo]) -> Marked:
    user = caller(request).user
    return Marked(marked=inbox.mark(user, None, read=True, up_to=asked.up_to))


@router.post("/{int:id}/read", auth=WRITE, response=Marked, summary="Mark one as read")
def read_one(request: HttpRequest, id: int, asked: Query[UpTo]) -> Marked:
    user = caller(request).user
    _check_mine(user, id)
    return Marked(marked=inbox.mark(user, [id], read=True, up_to=asked.up_to))


@router.post("/{int:id}/unread", auth=WRITE, response=Marked, summary="Mark one as unread")
def unread_one(request: HttpRequest, id: int) -> Marked:
    user = caller(request).user
    _check_mine(user, id)
    return Marked(marked=inbox.mark(user, [id], read=False))


def _check_mine(user: User, id: int) -> None:
    if not inbox.of(user).filter(pk=id).exists():
        raise not_found("item")


def _out(row: InboxItem, event: EventBrief | None) -> InboxItemOut:
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


def _cursor(row: InboxItem) -> str:
    return encode(row.arrived_at.isoformat(), row.pk)


def _key(cursor: str) -> tuple[datetime, int]:
    text, id = decode(cursor, str, int)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = datetime.min
    if at.tzinfo is None:
        raise wrong_parameter("cursor", NOT_OURS)
    return at, id
