"""System checks of the build settings and event types."""

from collections import Counter
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from domains.builds.destinations.base import Misconfigured, UnknownBus
from domains.builds.destinations.connections import bus_class
from domains.builds.event_types.catalogue import builds_types

MAX_NAME_LENGTH = 100


@register("builds")
def backend_names_are_valid(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A backend's name is part of its events' source, `obs:<name>:<epoch>`."""
    return [
        Error(
            f"OBS_BACKEND_URL: {name[:MAX_NAME_LENGTH]!r} is not a valid name of a backend",
            hint=f"use letters, digits, - and _ only, {MAX_NAME_LENGTH} at most",
            id="builds.E001",
        )
        for name in settings.OBS_BACKENDS
        if len(name) > MAX_NAME_LENGTH or not name.replace("-", "").replace("_", "").isalnum()
    ]


@register("builds")
def bus_source_is_no_destination(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """A bus that is both source and destination would send each event in an endless loop."""
    source = _address(settings.BUS_SOURCE_URL)
    return [
        Error(
            f"BUS_SOURCE_URL: is the same bus as BUS_BACKENDS' {name}",
            hint="events from this bus would be sent to it again in an endless loop;"
            " use another vhost",
            id="builds.E002",
        )
        for name, url in settings.BUS_BACKENDS.items()
        if source and _address(url) == source
    ]


@register("builds")
def type_names_are_unique(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Each raw type and each bus key belongs to one event type."""
    return [
        Error(f"{count} event types have the {attribute} {name!r}", id="builds.E003")
        for attribute in ("raw_type", "bus_key")
        for name, count in Counter(getattr(type, attribute) for type in builds_types()).items()
        if name and count > 1
    ]


@register("settings")
def check_webhook_secrets(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Keys of http bus backends have the format of Standard Webhooks."""
    secrets = {"BUS_WEBHOOK_SECRET": settings.BUS_WEBHOOK_SECRET} | {
        f"BUS_SECRET_{name}": secret for name, secret in settings.BUS_SECRETS.items()
    }
    return [
        Error(f"{name}: does not start with whsec_", id="tailrace.E002")
        for name, secret in secrets.items()
        if secret and not secret.startswith("whsec_")
    ]


@register("settings", deploy=True)
def check_webhooks_signed(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    return [
        Error(
            f"BUS_WEBHOOK_SECRET: is not set, and bus backend {name} needs it", id="tailrace.E109"
        )
        for name, url in settings.BUS_BACKENDS.items()
        if url.startswith("http")
        and not settings.BUS_SECRETS.get(name.upper(), settings.BUS_WEBHOOK_SECRET)
    ]


@register("builds")
def buses_are_usable(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Each of BUS_BACKENDS has a known scheme, and a URL and secret that can work."""
    errors: list[CheckMessage] = []
    for name, url in settings.BUS_BACKENDS.items():
        try:
            bus_class(url)(name, url)
        except (UnknownBus, Misconfigured) as error:
            errors.append(Error(f"BUS_BACKENDS: {name}: {error}", id="builds.E010"))
    return errors


def _address(url: str) -> tuple[str, str, str] | None:
    """Return host, port and vhost of an AMQP bus; None for any other bus."""
    parts = urlsplit(url)
    if parts.scheme not in ("amqp", "amqps"):
        return None
    try:
        port = parts.port
    except ValueError:
        return None
    default_port = 5671 if parts.scheme == "amqps" else 5672
    return parts.hostname or "", str(port or default_port), parts.path.strip("/")
