"""Find event types by their names in the log and on the bus."""

from functools import cache

from tailrace.domains.builds.event_types.base import BuildsEvent
from tailrace.events.types import all_types


def builds_types() -> list[type[BuildsEvent]]:
    """Return the concrete event types of the build service, by name."""
    return [type for type in all_types() if issubclass(type, BuildsEvent)]


@cache
def by_raw_type() -> dict[str, type[BuildsEvent]]:
    """Return the event types by their names in the backend's notification log."""
    return {type.raw_type: type for type in builds_types() if type.raw_type}


@cache
def by_bus_key() -> dict[str, type[BuildsEvent]]:
    """Return the event types by their routing keys on the bus, without the namespace."""
    return {type.bus_key: type for type in builds_types() if type.bus_key}
