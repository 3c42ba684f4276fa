"""Show pages with a map."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpResponse

from jobs.overview.security import CONTENT_SECURITY_POLICY
from web.pages.frame import PersonRequest, show


def show_with_map(request: PersonRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Show a page that may load images from the host of the map's tiles, if there is one."""
    tiles = {"tiles": settings.PHOTOS_TILES_URL, "credit": settings.PHOTOS_TILES_CREDIT}
    response = show(request, template, {**context, **tiles})
    if settings.PHOTOS_TILES_URL:
        parts = urlsplit(settings.PHOTOS_TILES_URL)
        origin = f"{parts.scheme}://{parts.netloc}"
        response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.replace(
            "img-src 'self'", f"img-src 'self' {origin}"
        )
    return response
