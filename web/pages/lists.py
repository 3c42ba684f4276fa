"""Lists on pages, newest first (the template `tailrace/web/older.html` links their pages), and
parts of a page that htmx reloads while the page is visible."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import render_to_string

from tailrace.db.pagination import InvalidCursor, page_of_rows

M = TypeVar("M", bound=Model)
PAGE_SIZE = 20
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"')


def list_page(
    request: HttpRequest, rows: QuerySet[M], size: int = PAGE_SIZE, *, time_column: str = ""
) -> tuple[list[M], str]:
    """Return the page of rows after the cursor `after` of the URL, newest first by id or by a time
    column, and the cursor of the next page ("" if there is none). Raises Http404 for an invalid
    cursor."""
    try:
        return page_of_rows(rows, request.GET.get("after") or None, size, time_column)
    except InvalidCursor:
        raise Http404 from None


def live_address(request: HttpRequest, address: str) -> str:
    """Return the address of a list for `render_live`: it keeps the page that the request shows."""
    return f"{address}?{urlencode({'after': request.GET.get('after', '')})}&"


def render_live(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    address: str,
    *,
    seconds: int = 5,
) -> str:
    """Return the HTML of the part, which requests `address` every `seconds` seconds.

    `address` ends with `?` or `&`. Its view returns a `live_response`.
    """
    inside = render_to_string(template, dict(context), request)
    content = _TOKEN.sub("", inside)  # the CSRF token differs in each response
    version = hashlib.sha256(f"{seconds}{content}".encode()).hexdigest()[:16]
    part = {"inside": inside, "address": address, "version": version, "seconds": seconds}
    return render_to_string("tailrace/web/live.html", part, request)


def live_response(request: HttpRequest, html: str) -> HttpResponse:
    """Return the part, or 204 if the page already shows the same content."""
    version = request.GET.get("version", "")
    if len(version) == 16 and f"version={version}" in html:
        return HttpResponse(status=204)
    return HttpResponse(html)
