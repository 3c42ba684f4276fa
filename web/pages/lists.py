"""Lists on pages: rows page by page, newest first. The template `tailrace/web/older.html` links
the pages."""

from typing import TypeVar
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest

from tailrace.db.pagination import InvalidCursor, page_by_id, page_by_time

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


def live_address(request: HttpRequest, address: str) -> str:
    """Return the address of a list for `render_live`: it keeps the page that the request shows."""
    return f"{address}?{urlencode({'after': request.GET.get('after', '')})}&"
