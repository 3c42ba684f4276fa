"""The handlers of all installed apps, found in their `handlers` module or package."""

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import TypeVar

from django.apps import apps
from django.utils.module_loading import module_has_submodule

from events.suggest import did_you_mean
from events.types import find_type
from jobs.handler import Handler

T = TypeVar("T")


class UnknownHandler(LookupError):
    """No app declares a handler of this name."""


def discover() -> None:
    """Import every app's `handlers`, and every module of it if it is a package."""
    for config in apps.get_app_configs():
        if config.module and module_has_submodule(config.module, "handlers"):
            _import_all(importlib.import_module(f"{config.name}.handlers"))
    everything.cache_clear()
    wanting.cache_clear()


def _import_all(module: ModuleType) -> None:
    for info in pkgutil.iter_modules(getattr(module, "__path__", ())):
        importlib.import_module(f"{module.__name__}.{info.name}")


def named(base: type[T]) -> list[type[T]]:
    """Return the subclasses of `base` that have a name of their own, at any depth."""
    found, queue = [], list(base.__subclasses__())
    while queue:
        cls = queue.pop()
        queue.extend(cls.__subclasses__())
        if cls.__dict__.get("name"):
            found.append(cls)
    return found


def classes() -> list[type[Handler]]:
    """Return every named subclass of Handler, at any depth."""
    return named(Handler)


@cache
def everything() -> dict[str, Handler]:
    """Return the handlers by name."""
    return {cls.name: cls() for cls in sorted(classes(), key=lambda cls: cls.name)}


def find(name: str) -> Handler | None:
    return everything().get(name)


def get(name: str) -> Handler:
    """Return the handler called `name`, or raise UnknownHandler with a suggestion."""
    handler = find(name)
    if handler is None:
        raise UnknownHandler(f"no handler is called {name!r}{did_you_mean(name, everything())}")
    return handler


@cache
def wanting(type_name: str) -> tuple[Handler, ...]:
    """Return the handlers that events of the type of this name owe a job to."""
    event_type = find_type(type_name)
    if event_type is None:
        return ()
    return tuple(
        handler for handler in everything().values() if issubclass(event_type, tuple(handler.on))
    )


def laned() -> list[str]:
    """Return the names of the handlers whose jobs stand in lanes."""
    return [name for name, handler in everything().items() if handler.in_lanes()]


def clear() -> None:
    """Forget what was found: for tests that declare handlers of their own."""
    everything.cache_clear()
    wanting.cache_clear()
