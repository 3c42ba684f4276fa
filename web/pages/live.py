"""Parts of a page that htmx reloads while the page is visible."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"')


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
