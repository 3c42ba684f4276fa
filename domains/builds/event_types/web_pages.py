"""Find the page about an event on the web pages of the build service (OBS_WEB_URL)."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from django.conf import settings

Page = tuple[str, ...]
"""A URL path, and the payload keys whose values are appended to it as segments."""

_PAGES: tuple[Page, ...] = (
    ("request/show", "number"),
    ("package/live_build_log", "project", "package", "repository", "arch"),
    ("package/show", "project", "package"),
    ("project/show", "project"),
    ("groups", "group"),
)
"""The pages for most payloads (src/api/config/routes/webui.rb of OBS). The first one with all of
its keys in the payload is used."""


def page_of(payload: Mapping[str, Any], type_page: Page | None = None) -> str:
    """Return the URL of the page about the payload: `type_page`, or else one of _PAGES. It is empty
    if the payload lacks the keys, or without OBS_WEB_URL."""
    web = settings.OBS_WEB_URL.rstrip("/")
    for path, *keys in ((type_page,) if type_page else _PAGES) if web else ():
        values = [payload.get(key) for key in keys]
        if all(value not in (None, "") for value in values):
            return "/".join([web, path, *(quote(str(value), safe=":+") for value in values)])
    return ""
