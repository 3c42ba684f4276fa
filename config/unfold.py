"""Looks of the admin: names, colours, and the sidebar."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse_lazy


def environment(request: HttpRequest) -> list[str]:
    """Return the label beside the title: where one is, and how careful to be."""
    from django.conf import settings

    if settings.DEBUG:
        return ["Development", "info"]
    if settings.PUBLIC_URL.startswith(("http://127.0.0.1", "http://localhost")):
        return ["Local", "info"]
    return ["Production", "danger"]


def _may(*permissions: str) -> Callable[[HttpRequest], bool]:
    return lambda request: any(request.user.has_perm(each) for each in permissions)


def _page(title: str, icon: str, view: str, *permissions: str) -> dict[str, Any]:
    item: dict[str, Any] = {"title": title, "icon": icon, "link": reverse_lazy(view)}
    if permissions:
        item["permission"] = _may(*permissions)
    return item


def _list(title: str, icon: str, model: str, *others: str) -> dict[str, Any]:
    """A link to the list of `app.model`, for those who may view it or have one of `others`."""
    app, name = model.split(".")
    rights = [f"{app}.{verb}_{name}" for verb in ("view", "change")]
    return _page(title, icon, f"admin:{app}_{name}_changelist", *rights, *others)


# Teal on a cool grey: quiet enough to look at all day.
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
    "SITE_SUBHEADER": "what happened, what is owed, who cares",
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
        "navigation": [
            {
                "title": "Work",
                "items": [
                    # Its address begins every other one, so unfold would mark it on every page.
                    _page("Overview", "monitoring", "overview") | {"active": lambda request: False},
                    _list("Events", "bolt", "events.event"),
                    _list("Jobs", "task_alt", "jobs.job"),
                    _list("Queues", "low_priority", "jobs.queue", "jobs.pause_queue"),
                ],
            },
            {
                "title": "Clockwork",
                "separator": True,
                "items": [
                    _list("Schedules", "schedule", "jobs.schedule"),
                    _list("Slots", "event_available", "jobs.slot"),
                    _list("Sweep runs", "cleaning_services", "jobs.sweeprun"),
                    _list("Breakers", "electrical_services", "jobs.breaker"),
                    _list("Beat", "timer", "django_celery_beat.periodictask"),
                ],
            },
            {
                "title": "Builds",
                "separator": True,
                "items": [
                    _list("Project log", "history", "builds.projectlogentry"),
                    _list("Projects", "folder", "builds.project"),
                    _list("Packages", "deployed_code", "builds.package"),
                    _list("Binaries", "inventory_2", "builds.binary"),
                ],
            },
            {
                "title": "Photos",
                "separator": True,
                "items": [
                    _list("Photos", "photo_camera", "photos.photo"),
                    _list("Gatherings", "groups", "photos.gathering"),
                ],
            },
            {
                "title": "Subscriptions",
                "separator": True,
                "items": [
                    _list("Who hears what", "tune", "subscriptions.eventsubscription"),
                    _list("Notifications", "notifications", "subscriptions.notification"),
                    _list("Feeds", "rss_feed", "subscriptions.feed"),
                    _list("Group addresses", "alternate_email", "subscriptions.groupaddress"),
                ],
            },
            {
                "title": "People",
                "separator": True,
                "items": [
                    _list("Users", "person", "auth.user"),
                    _list("Groups", "group", "auth.group"),
                ],
            },
        ],
    },
}
