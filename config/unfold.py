"""The looks of the admin: names and colours."""

from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static


def environment(request: HttpRequest) -> list[str]:
    """Return the label beside the title, and its colour: development, local or production."""
    from django.conf import settings

    if settings.DEBUG:
        return ["Development", "info"]
    if settings.PUBLIC_URL.startswith(("http://127.0.0.1", "http://localhost")):
        return ["Local", "info"]
    return ["Production", "danger"]


# Teal on a cool grey.
_COLOURS = {
    "primary": {
        "50": "oklch(98.4% .014 180.72)",
        "100": "oklch(95.3% .051 180.801)",
        "200": "oklch(91% .096 180.426)",
        "300": "oklch(85.5% .138 181.071)",
        "400": "oklch(77.7% .152 181.912)",
        "500": "oklch(70.4% .14 182.503)",
        "600": "oklch(51.1% .096 186.391)",
        "700": "oklch(43.7% .078 188.216)",
        "800": "oklch(38.6% .063 188.416)",
        "900": "oklch(33% .053 190)",
        "950": "oklch(27.7% .046 192.524)",
    }
}

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Tailrace",
    "SITE_HEADER": "Tailrace",
    "SITE_SUBHEADER": "events, jobs, subscriptions",
    "SITE_SYMBOL": "waves",
    "SITE_URL": "/",
    "SHOW_HISTORY": True,
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "ENVIRONMENT": "config.unfold.environment",
    "COLORS": _COLOURS,
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("jobs/icon.svg"),
        }
    ],
    "STYLES": [lambda request: static("jobs/tailrace.css")],
    "SIDEBAR": {
        "show_search": True,
        "show_all_applications": True,
        "navigation": "config.sidebar.sections",
    },
}
