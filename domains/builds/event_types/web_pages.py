"""The page of the build service (OBS_WEB_URL) where people read more about an event."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from django.conf import settings

Page = tuple[str, ...]
"""A path, and the keys of the payload whose values stand behind it."""

_PAGES: tuple[Page, ...] = (
    ("request/show", "number"),
    ("package/live_build_log", "project", "package", "repository", "arch"),
    ("package/show", "project", "package"),
    ("project/show", "project"),
    ("groups", "group"),
)
"""Those of most payloads (src/api/config/routes/webui.rb of OBS); the first one counts."""


def page_of(payload: Mapping[str, Any], own: Page | None = None) -> str:
    """Return the address of the page of what the payload names, by the event type's own page if it
    has one; empty if the payload lacks its keys, or without OBS_WEB_URL."""
    web = settings.OBS_WEB_URL.rstrip("/")
    for path, *keys in ((own,) if own else _PAGES) if web else ():
        values = [payload.get(key) for key in keys]
        if all(value not in (None, "") for value in values):
            return "/".join([web, path, *(quote(str(value), safe=":+") for value in values)])
    return ""
