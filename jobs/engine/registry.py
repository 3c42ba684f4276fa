"""The handlers of all installed apps, from their `handlers` modules or packages."""

from collections.abc import Callable
from functools import cache

from tailrace.environment.discovery import import_modules, subclasses
from tailrace.environment.suggest import did_you_mean
from tailrace.events.types import find_type
from tailrace.jobs.handler import Handler


class UnknownHandler(LookupError):
    """No app declares a handler with this name."""


def discover() -> None:
    import_modules("handlers")
    clear()


def handler_classes() -> list[type[Handler]]:
    """Return all subclasses of Handler, direct or not, that have a name."""
    return [cls for cls in subclasses(Handler) if cls.__dict__.get("name")]


before_listing: list[Callable[[], None]] = []
"""Called before the handlers are listed, to declare handlers that no import declares."""


@cache
def all_handlers() -> dict[str, Handler]:
    """Return the handlers by name."""
    for declare in before_listing:
        declare()
    return {cls.name: cls() for cls in sorted(handler_classes(), key=lambda cls: cls.name)}


def find(name: str) -> Handler | None:
    """Return the handler called `name`, also a variant `handler@queue` of another one."""
    handlers = all_handlers()
    base = handlers.get(name.partition("@")[0])
    return handlers.get(name) or (base and base.variant(name))


def get(name: str) -> Handler:
    """Return the handler called `name`, or raise UnknownHandler with a suggestion."""
    if handler := find(name):
        return handler
    raise UnknownHandler(f"no handler is called {name!r}{did_you_mean(name, all_handlers())}")


@cache
def handlers_for(type_name: str) -> tuple[Handler, ...]:
    """Return the handlers that get jobs for events of this type."""
    event_type = find_type(type_name)
    if event_type is None:
        return ()
    return tuple(
        handler
        for handler in all_handlers().values()
        if issubclass(event_type, handler.event_types())
    )


def clear() -> None:
    """Clear the caches: for tests that declare handlers of their own."""
    all_handlers.cache_clear()
    handlers_for.cache_clear()
