"""My inbox: the unread first, then the read; a page begins behind the last item of another."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from events.models import Event
from subscriptions import inbox
from subscriptions.models import InboxItem
from subscriptions.pages.lines import Hidden, Line, lines
from subscriptions.pages.person import PersonRequest, by_htmx, for_person, show, unread

PAGE = 30
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: after the item of this key."""

    unread: bool
    at: datetime
    id: int

    @classmethod
    def after(cls, row: InboxItem) -> "Place":
        return cls(row.read_at is None, row.arrived_at, row.pk)

    @classmethod
    def of(cls, text: str) -> "Place | None":
        """Read what `str` wrote; None for an empty text, 404 for any other."""
        if not text:
            return None
        found = re.fullmatch(r"([ur])_([0-9T:.+Z-]{10,40})_([0-9]{1,19})", text)
        try:
            place = found and cls(found[1] == "u", datetime.fromisoformat(found[2]), int(found[3]))
        except ValueError:
            place = None
        if place is None or place.at.tzinfo is None or place.id > _LARGEST:
            raise Http404
        return place

    def __str__(self) -> str:
        return f"{'u' if self.unread else 'r'}_{self.at.isoformat()}_{self.id}"


@require_GET
@for_person
def my_inbox(request: PersonRequest) -> HttpResponse:
    """A page of what stands in one's inbox and in those of one's groups."""
    only = "unread" in request.GET
    found = list(_page(request.user, only, Place.of(request.GET.get("after", ""))))
    rows = found[:PAGE]
    older = ""
    if len(found) > PAGE:
        older = urlencode({**({"unread": ""} if only else {}), "after": Place.after(rows[-1])})
    context = {
        "only": only,
        "items": _items(request.user, rows),
        "older": older,
        "first": "after" not in request.GET,
        "up_to": Event.objects.order_by("-pk").values_list("pk", flat=True).first() or 0,
        "groups": any(row.group_id for row in rows),
    }
    return show(request, "inbox.html", context)


@require_GET
@for_person
def count(request: PersonRequest) -> HttpResponse:
    """How much is unread, for the navigation of any page."""
    return render(request, "subscriptions/me/unread.html", {"unread": unread(request.user)})


@require_POST
@for_person
def read_all(request: PersonRequest) -> HttpResponse:
    """Mark all as read, but for what came after the page was made."""
    marked = inbox.mark(request.user, None, read=True, up_to=_up_to(request))
    messages.success(request, f"{marked} marked as read.")
    return redirect("my_inbox")


@require_POST
@for_person
def mark(request: PersonRequest, id: int, read: bool) -> HttpResponse:
    """Mark one as read or unread; to htmx its line is given back, others go back to their page."""
    mine = inbox.of(request.user).select_related("group")
    if not mine.filter(pk=id).exists():
        raise Http404
    inbox.mark(request.user, [id], read=read, up_to=_up_to(request) if read else None)
    if not by_htmx(request):
        return redirect(_back(request))
    items = _items(request.user, [mine.get(pk=id)])
    answer = render(request, "subscriptions/me/inbox_item.html", {"item": items[0]})
    answer["HX-Trigger"] = "inbox"
    return answer


def _page(user: User, only: bool, after: Place | None) -> Iterator[InboxItem]:
    """Yield a page and one item more, if there is one: the unread, then the read."""
    rows = inbox.of(user).select_related("group")
    left = PAGE + 1
    if after is None or after.unread:
        found = list(_beyond(rows.filter(read_at=None), after)[:left])
        yield from found
        left -= len(found)
        after = None
    if left and not only:
        yield from _beyond(rows.exclude(read_at=None), after)[:left]


def _beyond(rows: QuerySet[InboxItem], after: Place | None) -> QuerySet[InboxItem]:
    if after is None:
        return rows
    return rows.filter(Q(arrived_at__lt=after.at) | Q(arrived_at=after.at, pk__lt=after.id))


def _items(user: User, rows: list[InboxItem]) -> list[dict[str, Any]]:
    told: dict[int, Line | Hidden] = lines(user, [row.event_id for row in rows])
    return [{"row": row, "line": told[row.event_id]} for row in rows]


def _up_to(request: HttpRequest) -> int | None:
    """Return the newest event that was seen; what came later stays unread."""
    text = request.POST.get("up_to", "")
    return min(int(text), _LARGEST) if re.fullmatch("[0-9]{1,19}", text) else None


def _back(request: HttpRequest) -> str:
    """Return the page of the inbox that the button stood on, if the form names one."""
    asked = {key: request.POST[key] for key in ("unread", "after") if key in request.POST}
    return f"{reverse('my_inbox')}?{urlencode(asked)}" if asked else reverse("my_inbox")
