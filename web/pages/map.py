"""Pages with a map."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.http import HttpResponse

from tailrace.web.pages.frame import PersonRequest, show
from tailrace.web.pages.headers import CONTENT_SECURITY_POLICY


def show_with_map(
    request: PersonRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    tiles: str,
    credit: str,
) -> HttpResponse:
    """Show a page that may load map tiles from their host.

    `tiles` is the URL template of the tiles (empty: the base map of this site) and `credit` their
    attribution; both are added to the context of the template.
    """
    response = show(request, template, {**context, "tiles": tiles, "credit": credit})
    if tiles:
        parts = urlsplit(tiles)
        response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.replace(
            "img-src 'self'", f"img-src 'self' {parts.scheme}://{parts.netloc}"
        )
    return response
