"""Lists with an "Older" link that reload themselves while the page is visible."""

import hashlib
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.template.loader import render_to_string

from web.pages.frame import PersonRequest
from web.pagination import InvalidCursor, page_by_time

PAGE_SIZE = 60


def render_list(
    request: PersonRequest, template: str, context: Mapping[str, Any], address: str
) -> str:
    """Return a list's HTML, which requests `address` again every few seconds."""
    after = request.GET.get("after", "")
    inside = render_to_string(template, {**context, "after": after}, request)
    page = {
        "inside": inside,
        "address": f"{address}?after={after}&" if after else f"{address}?",
        "seen": hashlib.sha256(inside.encode()).hexdigest()[:16],
    }
    return render_to_string("photos/live.html", page, request)


def list_response(request: PersonRequest, html: str) -> HttpResponse:
    """Return the list, or 204 if the page has the same one."""
    seen = request.GET.get("seen", "")
    if len(seen) == 16 and f"seen={seen}" in html:
        return HttpResponse(status=204)
    return HttpResponse(html)


def page_after(
    request: PersonRequest, rows: QuerySet[Any], column: str, size: int = PAGE_SIZE
) -> dict[str, Any]:
    """Return the context of a page: its `rows`, newest first, and `older`, the next cursor.

    Raises 404 for an unknown cursor.
    """
    try:
        page, older = page_by_time(rows, column, request.GET.get("after") or None, size)
    except InvalidCursor:
        raise Http404 from None
    return {"rows": page, "older": older}
