"""The kinds of buses by URL scheme, and this process's connections to those of BUS_BACKENDS."""

from functools import cache
from urllib.parse import urlsplit

from django.conf import settings

from tailrace.domains.builds.destinations.base import Bus, UnknownBus
from tailrace.domains.builds.event_types.base import BuildsEvent
from tailrace.events.discovery import import_modules, subclasses
from tailrace.events.suggest import did_you_mean
from tailrace.events.types import EventType
from tailrace.net.process_cache import process_cache

_open: dict[str, Bus] = process_cache()


@cache
def bus_classes() -> dict[str, type[Bus]]:
    """Return the classes by URL scheme: subclasses of Bus in `destinations` of any app."""
    import_modules("destinations")
    return {scheme: bus for bus in subclasses(Bus) for scheme in bus.schemes}


def bus_class(url: str) -> type[Bus]:
    """Return the class for a URL, or raise UnknownBus with the known schemes."""
    scheme = urlsplit(url).scheme
    if scheme not in bus_classes():
        known = ", ".join(f"{name}://" for name in sorted(bus_classes()))
        raise UnknownBus(f"unknown scheme {scheme}:// (known: {known})")
    return bus_classes()[scheme]


def takers_of(event_type: type[EventType] | None) -> list[str]:
    """Return the names of those BUS_BACKENDS that take events of this type."""
    if event_type is None or not issubclass(event_type, BuildsEvent):
        return []
    return [name for name, url in settings.BUS_BACKENDS.items() if _takes(url, event_type)]


def _takes(url: str, event_type: type[BuildsEvent]) -> bool:
    try:
        return bus_class(url).takes(event_type)
    except UnknownBus:  # its job fails with the reason
        return bool(event_type.bus_key)


def connect(name: str) -> Bus:
    """Return this process's bus of that name in BUS_BACKENDS; it connects when it first sends.

    Raises UnknownBus or Misconfigured.
    """
    url = settings.BUS_BACKENDS.get(name)
    if url is None:
        hint = did_you_mean(name, settings.BUS_BACKENDS)
        raise UnknownBus(f"BUS_BACKENDS has no bus {name!r}{hint}")
    bus = _open.get(name)
    if bus is None or bus.url != url:
        if bus is not None:
            bus.close()
        bus = _open[name] = bus_class(url)(name, url)
    return bus


def close_all() -> None:
    """Close this process's connections."""
    while _open:
        _open.popitem()[1].close()
