"""Paginated lists that reload themselves while the page is visible."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet
from django.http import Http404

from tailrace.web.pages.frame import PersonRequest
from tailrace.web.pages.live import render_live
from tailrace.web.pagination import InvalidCursor, page_by_time

PAGE_SIZE = 60


def render_list(
    request: PersonRequest, template: str, context: Mapping[str, Any], address: str
) -> str:
    """Return the HTML of a list that reloads itself from `address` every few seconds."""
    after = request.GET.get("after", "")
    address = f"{address}?after={after}&" if after else f"{address}?"
    return render_live(request, template, {**context, "after": after}, address)


def page_after(
    request: PersonRequest, rows: QuerySet[Any], column: str, size: int = PAGE_SIZE
) -> dict[str, Any]:
    """Return the template context of a page: `rows`, newest first, and `older`, the next cursor.

    Raises Http404 for an invalid cursor.
    """
    try:
        page, older = page_by_time(rows, column, request.GET.get("after") or None, size)
    except InvalidCursor:
        raise Http404 from None
    return {"rows": page, "older": older}
