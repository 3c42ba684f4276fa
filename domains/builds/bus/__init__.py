"""Buses: where events are announced, each by its URL in BUS_BACKENDS. One module per kind."""

import importlib
import os
import pkgutil

from django.conf import settings

from domains.builds.bus.base import (
    SENT,
    UNTRIED,
    Bus,
    Delivery,
    Down,
    Fate,
    Message,
    Misconfigured,
    UnknownBus,
    kind,
    redacted,
)
from events.suggest import did_you_mean

__all__ = [
    "SENT",
    "UNTRIED",
    "Bus",
    "Delivery",
    "Down",
    "Fate",
    "Message",
    "Misconfigured",
    "UnknownBus",
    "connect",
    "kind",
    "redacted",
]

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

_open: dict[str, Bus] = {}
_inherited: list[Bus] = []
"""Connections of the parent process: kept, for closing one here would break it there."""


def _forget() -> None:
    _inherited.extend(_open.values())
    _open.clear()


os.register_at_fork(after_in_child=_forget)


def connect(name: str) -> Bus:
    """Return this process's bus of that name in BUS_BACKENDS; it connects when it first sends.

    Raises UnknownBus or Misconfigured.
    """
    url = settings.BUS_BACKENDS.get(name)
    if url is None:
        hint = did_you_mean(name, settings.BUS_BACKENDS)
        raise UnknownBus(f"BUS_BACKENDS names no bus {name!r}{hint}")
    bus = _open.get(name)
    if bus is None or bus.url != url:
        if bus is not None:
            bus.close()
        bus = _open[name] = kind(url)(name, url)
    return bus


def close_all() -> None:
    """Close what this process keeps open."""
    while _open:
        _open.popitem()[1].close()
