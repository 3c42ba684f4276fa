"""Event types: the declared shapes of events, found in `event_types.py` of every installed app."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from events.errors import UnknownEventType
from events.suggest import did_you_mean

_registry: dict[str, type["EventType"]] = {}


class EventType:
    """A kind of event. Subclass it once per kind; a base class shared by several is a family.

    `name` is what is stored and shown, `Payload` the model that validates the payload, the
    docstring the description. A family sets `abstract = True` and is never published itself.
    """

    name: ClassVar[str] = ""
    abstract: ClassVar[bool] = True
    schema_version: ClassVar[int] = 1

    class Payload(BaseModel):
        model_config = ConfigDict(extra="forbid")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.abstract = cls.__dict__.get("abstract", False)
        if cls.abstract:
            return
        if not cls.__dict__.get("name"):
            raise TypeError(f"event type {cls.__qualname__} has no name; set `name` or `abstract`")
        other = _registry.get(cls.name)
        if other is not None and other.__qualname__ != cls.__qualname__:
            raise TypeError(f"event types {other!r} and {cls!r} are both named {cls.name!r}")
        _registry[cls.name] = cls

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Say what the event is about, e.g. `home:alice/hello`; empty: nothing."""
        return ""

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        """Say what is odd about a payload from outside that is good enough to be recorded.

        Empty means fine. The event still fans out; operators see it among the flagged ones.
        """
        return ""

    @classmethod
    def description(cls) -> str:
        return (cls.__doc__ or "").strip().split("\n\n")[0]


class Quarantined(EventType):
    """Something from outside that could not be understood, kept as it came."""

    name = "events.quarantined"

    class Payload(BaseModel):
        type: str
        payload: Any = None
        reason: str


def all_types() -> list[type[EventType]]:
    """Return every concrete event type, by name."""
    return [_registry[name] for name in sorted(_registry)]


def find_type(name: str) -> type[EventType] | None:
    return _registry.get(name)


def get_type(name: str) -> type[EventType]:
    """Return the event type called `name`, or raise UnknownEventType with a suggestion."""
    found = _registry.get(name)
    if found is None:
        raise UnknownEventType(
            f"no event type is called {name!r}{did_you_mean(name, _registry)}"
            " (`manage.py event_catalog` lists them)"
        )
    return found
