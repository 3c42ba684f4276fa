"""Find the Bus classes by URL scheme, and keep this process's connections to BUS_BACKENDS."""

from functools import cache
from urllib.parse import urlsplit

from django.conf import settings

from tailrace.domains.builds.destinations.base import Bus, UnknownBus
from tailrace.domains.builds.event_types.base import BuildsEvent
from tailrace.environment.discovery import import_modules, subclasses
from tailrace.environment.suggest import did_you_mean
from tailrace.events.types import EventType
from tailrace.net.process_cache import process_cache

_open_buses: dict[str, Bus] = process_cache()


@cache
def bus_classes() -> dict[str, type[Bus]]:
    """Return the Bus classes by URL scheme: the subclasses of Bus in `destinations` of any app."""
    import_modules("destinations")
    return {scheme: bus for bus in subclasses(Bus) for scheme in bus.schemes}


def bus_class(url: str) -> type[Bus]:
    """Return the Bus class for a URL; raise UnknownBus, with the known schemes, if none fits."""
    scheme = urlsplit(url).scheme
    if scheme not in bus_classes():
        known = ", ".join(f"{name}://" for name in sorted(bus_classes()))
        raise UnknownBus(f"unknown scheme {scheme}:// (known: {known})")
    return bus_classes()[scheme]


def buses_for(event_type: type[EventType] | None) -> list[str]:
    """Return the names of the BUS_BACKENDS to which events of this type are sent."""
    if event_type is None or not issubclass(event_type, BuildsEvent):
        return []
    # For an unknown scheme, the default holds: the job fails with the reason.
    classes = {
        name: bus_classes().get(urlsplit(url).scheme, Bus)
        for name, url in settings.BUS_BACKENDS.items()
    }
    return [name for name, bus in classes.items() if bus.takes(event_type)]


def connect(name: str) -> Bus:
    """Return this process's bus of this name in BUS_BACKENDS, which connects at its first message.
    Raises UnknownBus or Misconfigured."""
    url = settings.BUS_BACKENDS.get(name)
    if url is None:
        hint = did_you_mean(name, settings.BUS_BACKENDS)
        raise UnknownBus(f"BUS_BACKENDS has no bus {name!r}{hint}")
    bus = _open_buses.get(name)
    if bus is None or bus.url != url:
        if bus is not None:
            bus.close()
        bus = _open_buses[name] = bus_class(url)(name, url)
    return bus
