"""The page of a user's inbox: unread items first, then read items."""

import re
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Max, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse

from tailrace.db.pagination import InvalidCursor, page_of_rows
from tailrace.subscriptions.channels.web import inbox
from tailrace.subscriptions.models import InboxItem
from tailrace.subscriptions.notifications.rendering.event_summary import recorded_events, summarize
from tailrace.web.pages.frame import PersonRequest, by_htmx, person_page, show

PAGE = 30
MAX_COUNTED = 100
DELETED = "This event is no longer stored."
NOT_READABLE = "You may no longer read this event."
MAX_ID = 2**63 - 1


@person_page("GET")
def my_inbox(request: PersonRequest) -> HttpResponse:
    """Show a page of the inboxes of the user and of the user's groups."""
    only = "unread" in request.GET
    try:
        rows, older = _page(request.user, only, request.GET.get("after", ""))
    except InvalidCursor:
        raise Http404 from None
    unread = inbox.of(request.user).filter(read_at=None).order_by()
    context = {
        "only": only,
        "unread": _unread(unread),
        "items": _items(request.user, rows),
        "older": older,
        "query": "unread=" if only else "",
        "first": "after" not in request.GET,
        # The newest id of all events would reveal events that the user may not read.
        "up_to": unread.aggregate(newest=Max("event_id"))["newest"] or 0,
        "groups": any(row.group_id for row in rows),
    }
    return show(request, "tailrace/subscriptions/pages/inbox/inbox.html", context)


@person_page("GET")
def count(request: PersonRequest) -> HttpResponse:
    """Return the number of unread items, which every page reloads."""
    return HttpResponse(unread_badge(request))


def unread_badge(request: HttpRequest) -> str:
    """Return the number of unread items as HTML that updates itself."""
    unread = inbox.of(cast(User, request.user)).filter(read_at=None).order_by()
    context = {"unread": _unread(unread)}
    return render_to_string("tailrace/subscriptions/pages/inbox/unread.html", context)


def _unread(unread: QuerySet[InboxItem]) -> str:
    """Return the number of unread items as text: empty if it is 0, at most `99+`."""
    count = len(unread.values_list("pk")[:MAX_COUNTED])
    return "99+" if count >= MAX_COUNTED else str(count or "")


@person_page("POST")
def read_all(request: PersonRequest) -> HttpResponse:
    """Mark all items as read, except items that arrived after the page was loaded."""
    marked = inbox.mark(request.user, None, read=True, up_to=_up_to(request))
    messages.success(request, f"{marked} item{'' if marked == 1 else 's'} marked as read.")
    return redirect("my_inbox")


@person_page("POST")
def mark(request: PersonRequest, id: int, read: bool) -> HttpResponse:
    """Mark an item as read or unread. Respond to htmx with the item, else redirect to the page."""
    rows = inbox.of(request.user).select_related("group")
    if not rows.filter(pk=id).exists():
        raise Http404
    inbox.mark(request.user, [id], read=read, up_to=_up_to(request) if read else None)
    if not by_htmx(request):
        query = {key: request.POST[key] for key in ("unread", "after") if key in request.POST}
        return redirect(f"{reverse('my_inbox')}{'?' if query else ''}{urlencode(query)}")
    items = _items(request.user, [rows.get(pk=id)])
    answer = render(
        request, "tailrace/subscriptions/pages/inbox/inbox_item.html", {"item": items[0]}
    )
    answer["HX-Trigger"] = "inbox"
    return answer


def _page(user: User, only: bool, after: str) -> tuple[list[InboxItem], str]:
    """Return a page of the items, unread ones before read ones, and the `after` of the next page:
    "u" or "r", and a cursor of the unread or of the read items. Raises InvalidCursor."""
    kind, cursor = after[:1] or "u", after[1:] or None
    if kind not in "ur":
        raise InvalidCursor("after")
    rows = inbox.of(user).select_related("group")
    page: list[InboxItem] = []
    if kind == "u":
        page, older = page_of_rows(rows.filter(read_at=None), cursor, PAGE, "arrived_at")
        if older:
            return page, f"u{older}"
        cursor = None
    read = rows.none() if only else rows.exclude(read_at=None)
    if len(page) == PAGE:
        return page, "r" if read.exists() else ""
    rest, older = page_of_rows(read, cursor, PAGE - len(page), "arrived_at")
    return page + rest, older and f"r{older}"


def _items(user: User, rows: list[InboxItem]) -> list[dict[str, Any]]:
    """Return each row with the summary of its event, or with the reason why the event is hidden."""
    events = recorded_events(row.event_id for row in rows)
    stored = {event.id for event in events}
    summaries = summarize(user, events)
    return [
        {
            "row": row,
            "event": summaries.get(row.event_id),
            "hidden": NOT_READABLE if row.event_id in stored else DELETED,
        }
        for row in rows
    ]


def _up_to(request: HttpRequest) -> int | None:
    """Return the `up_to` of the form: the newest event that the user has seen."""
    text = request.POST.get("up_to", "")
    return min(int(text), MAX_ID) if re.fullmatch("[0-9]{1,19}", text) else None
