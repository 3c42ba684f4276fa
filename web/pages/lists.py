"""Lists on pages: rows page by page, newest first. The template `tailrace/web/older.html` links
the pages."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest

from tailrace.web.pages.live import render_live
from tailrace.web.pagination import InvalidCursor, page_by_id, page_by_time

M = TypeVar("M", bound=Model)
PAGE_SIZE = 20


def list_page(
    request: HttpRequest, rows: QuerySet[M], size: int = PAGE_SIZE, *, time_column: str = ""
) -> tuple[list[M], str]:
    """Return the page of rows after the cursor `after` of the URL, newest first by id or by a time
    column, and the cursor of the next page ("" if there is none). Raises Http404 for an invalid
    cursor."""
    cursor = request.GET.get("after") or None
    try:
        if time_column:
            return page_by_time(rows, time_column, cursor, size)
        return page_by_id(rows, cursor, size)
    except InvalidCursor:
        raise Http404 from None


def render_live_list(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    address: str,
    *,
    seconds: int = 5,
) -> str:
    """Return the HTML of a page of a list that reloads itself from `address`."""
    query = urlencode({"after": request.GET.get("after", "")})
    return render_live(request, template, context, f"{address}?{query}&", seconds=seconds)
