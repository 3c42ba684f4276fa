"""The event types by the names that others give them."""

from functools import cache

from domains.builds.event_types.base import BuildsEvent
from events.types import all_types


def builds_types() -> list[type[BuildsEvent]]:
    """Return the concrete event types of the build service, by name."""
    return [found for found in all_types() if issubclass(found, BuildsEvent)]


@cache
def by_raw_type() -> dict[str, type[BuildsEvent]]:
    """Return the event types by what the backend's notification log calls them."""
    return {found.raw_type: found for found in builds_types() if found.raw_type}


@cache
def by_bus_key() -> dict[str, type[BuildsEvent]]:
    """Return the event types by their routing keys on the bus, without the namespace."""
    return {found.bus_key: found for found in builds_types() if found.bus_key}
