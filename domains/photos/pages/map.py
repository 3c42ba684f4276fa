"""Show pages with the map of gatherings."""

from typing import Any

from django.conf import settings
from django.http import HttpResponse

from tailrace.web.pages import frame
from tailrace.web.pages.frame import PersonRequest


def show_with_map(request: PersonRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Return a page with a map that has the tiles of PHOTOS_TILES_URL."""
    return frame.show_with_map(
        request,
        template,
        context,
        tiles=settings.PHOTOS_TILES_URL,
        credit=settings.PHOTOS_TILES_CREDIT,
    )
