"""System checks: each of BUS_BACKENDS has a kind that can work with its URL and secret."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from domains.builds.bus.base import Misconfigured, UnknownBus, kind


@register("builds")
def buses(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    for name, url in settings.BUS_BACKENDS.items():
        try:
            kind(url)(name, url)
        except (UnknownBus, Misconfigured) as error:
            found.append(Error(f"BUS_BACKENDS: {name}: {error}", id="builds.E010"))
    return found
