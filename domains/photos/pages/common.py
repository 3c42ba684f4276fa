"""common: what the pages share: the map's policy, and lists that are read anew while looked at."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse
from django.template.loader import render_to_string

from jobs.overview import CONTENT_SECURITY_POLICY
from subscriptions.api.paging import decode, encode
from subscriptions.api.problems import Problem
from subscriptions.pages.person import PersonRequest

PAGE = 60
_BEGIN = datetime.fromisoformat("1970-01-01T00:00:00Z")


def map_context() -> dict[str, Any]:
    return {"tiles": settings.PHOTOS_TILES_URL, "credit": settings.PHOTOS_TILES_CREDIT}


def with_tiles(response: HttpResponse) -> HttpResponse:
    """Let the page fetch pictures from where the map's tiles are, if anywhere."""
    if settings.PHOTOS_TILES_URL:
        parts = urlsplit(settings.PHOTOS_TILES_URL)
        origin = f"{parts.scheme}://{parts.netloc}"
        response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.replace(
            "img-src 'self'", f"img-src 'self' {origin}"
        )
    return response


def live(request: PersonRequest, template: str, context: Mapping[str, Any], address: str) -> str:
    """Return a list's HTML, which asks `address` for itself while it is looked at."""
    inside = render_to_string(template, dict(context), request)
    seen = hashlib.sha256(inside.encode()).hexdigest()[:16]
    framed = {"inside": inside, "address": address, "seen": seen}
    return render_to_string("photos/live.html", framed, request)


def anew(request: PersonRequest, html: str) -> HttpResponse:
    """Answer with the list, or with nothing if it is as the page has it."""
    seen = request.GET.get("seen", "")
    if len(seen) == 16 and f"seen={seen}" in html:
        return HttpResponse(status=204)
    return HttpResponse(html)


def page_along(
    rows: QuerySet[Any], column: str, after: str, size: int = PAGE
) -> tuple[list[Any], str]:
    """Return a page of the rows, the newest by `column` first, and where the next begins or "".

    Raises 404 for an `after` that is none of ours.
    """
    if after:
        try:
            micros, id = decode(after, int, int)
            at = _BEGIN + timedelta(microseconds=micros)
        except (Problem, OverflowError):
            raise Http404 from None
        rows = rows.filter(Q(**{f"{column}__lt": at}) | Q(pk__lt=id), **{f"{column}__lte": at})
    found = list(rows.order_by(f"-{column}", "-pk")[: size + 1])
    if len(found) <= size:
        return found, ""
    last = found[size - 1]
    micros = (getattr(last, column) - _BEGIN) // timedelta(microseconds=1)
    return found[:size], encode(micros, last.pk)
