"""The settings of unfold for the admin; the colours are in `tailrace/jobs/admin.css`."""

from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static


def environment(request: HttpRequest) -> list[str]:
    """Return the label beside the title (Development, Local or Production) and its colour."""
    from django.conf import settings

    if settings.DEBUG:
        return ["Development", "info"]
    if settings.PUBLIC_URL.startswith(("http://127.0.0.1", "http://localhost")):
        return ["Local", "info"]
    return ["Production", "danger"]


UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Tailrace",
    "SITE_HEADER": "Tailrace",
    "SITE_SUBHEADER": "events, jobs, subscriptions",
    "SITE_SYMBOL": "waves",
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "ENVIRONMENT": "tailrace.config.admin.looks.environment",
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda _: static("tailrace/jobs/icon.svg")}
    ],
    "STYLES": [
        lambda request: static("tailrace/jobs/admin.css"),
        lambda request: static("tailrace/jobs/tailrace.css"),
        lambda request: static("tailrace/jobs/state_badges.css"),
    ],
    "SCRIPTS": [lambda request: static("tailrace/jobs/admin.js")],
    "SIDEBAR": {
        "show_search": True,
        "show_all_applications": True,
        "navigation": "tailrace.config.admin.sidebar.sections",
    },
}
