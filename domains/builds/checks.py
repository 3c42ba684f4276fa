"""System checks of the domain: names and addresses that would not work, or bite themselves."""

from collections import Counter
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from domains.builds.event_types import builds_types

LONGEST_NAME = 100


@register("builds")
def backend_names(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A backend's name is part of its events' source, `obs:<name>:<epoch>`."""
    return [
        Error(
            f"OBS_BACKEND_URL: {name[:LONGEST_NAME]!r} is no name for a backend",
            hint=f"take letters, digits, - and _ only, {LONGEST_NAME} at most",
            id="builds.E001",
        )
        for name in settings.OBS_BACKENDS
        if len(name) > LONGEST_NAME or not name.replace("-", "").replace("_", "").isalnum()
    ]


@register("builds")
def no_circle(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A bus that is both listened to and announced on would send each event round for ever."""
    source = _place(settings.BUS_SOURCE_URL)
    return [
        Error(
            f"BUS_SOURCE_URL: is the same bus as BUS_BACKENDS' {name}",
            hint="events from there would be announced there again, for ever; use another vhost",
            id="builds.E002",
        )
        for name, url in settings.BUS_BACKENDS.items()
        if source and _place(url) == source
    ]


@register("builds")
def names_of_types(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Each raw type and each bus key belongs to one event type."""
    return [
        Error(f"{count} event types have the {what} {name!r}", id="builds.E003")
        for what, names in (
            ("raw_type", Counter(found.raw_type for found in builds_types())),
            ("bus_key", Counter(found.bus_key for found in builds_types())),
        )
        for name, count in names.items()
        if name and count > 1
    ]


def _place(url: str) -> tuple[str, str, str] | None:
    """Return host, port and vhost of an AMQP bus; None for anything else."""
    parts = urlsplit(url)
    if parts.scheme not in ("amqp", "amqps"):
        return None
    try:
        port = parts.port
    except ValueError:
        return None
    standard = 5671 if parts.scheme == "amqps" else 5672
    return parts.hostname or "", str(port or standard), parts.path.strip("/")
