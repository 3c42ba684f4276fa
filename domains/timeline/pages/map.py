"""Show pages with a map of tracks."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpResponse

from tailrace.web.pages import frame
from tailrace.web.pages.frame import PersonRequest


def show_with_map(
    request: PersonRequest, template: str, context: Mapping[str, Any]
) -> HttpResponse:
    """Return a page with a map that has the tiles of TIMELINE_TILES_URL."""
    return frame.show_with_map(
        request,
        template,
        context,
        tiles=settings.TIMELINE_TILES_URL,
        credit=settings.TIMELINE_TILES_CREDIT,
    )
