"""Topic names: names of event types, of families of event types, and `*` for all types. The topic
name of a concrete type is its `name`. A family has no `name`: its topic name is its app's label and
its class name in snake case, such as `builds.request`."""

import re
from collections.abc import Sequence

from django.apps import apps

from tailrace.events.types import EventType, all_types, find_type

EVERYTHING = "*"


_names: dict[type[EventType], Sequence[str]] = {}


def topic_names(event_type: type[EventType]) -> Sequence[str]:
    """Return the topic names of the type and its families, from the most specific to `*`."""
    if event_type not in _names:
        names = [topic_name(cls) for cls in event_type.__mro__ if _has_topic(cls)]
        _names[event_type] = tuple(dict.fromkeys([*names, EVERYTHING]))
    return _names[event_type]


def topic_name(cls: type[EventType]) -> str:
    if own := cls.__dict__.get("name"):
        return str(own)
    config = apps.get_containing_app_config(cls.__module__)
    app = config.name.rpartition(".")[2] if config else cls.__module__.partition(".")[0]
    return f"{app}.{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', cls.__name__).lower()}"


def type_title(event_type: type[EventType]) -> str:
    """Return the type's description on one line, without the final dot, or else its name."""
    return " ".join(event_type.description().split()).rstrip(".") or event_type.name


def quoted_title(name: str) -> str:
    """Return the title of the type called `name` in quotation marks, or just `name` if no app
    declares such a type."""
    event_type = find_type(name)
    return f"“{type_title(event_type)}”" if event_type else name


def all_topic_names(*, api: bool = False) -> list[str]:
    """Return all topic names; with `api`, only the names of types that the API records."""
    types = (cls for cls in all_types() if cls.api_records or not api)
    return sorted({name for cls in types for name in topic_names(cls)})


def family_of(event_type: type[EventType]) -> str:
    """Return the topic name of the nearest family, or of the type if it has no family."""
    classes = filter(_has_topic, event_type.__mro__)
    families = (cls for cls in classes if cls.__dict__.get("abstract"))
    return topic_name(next(families, event_type))


def family_title(name: str, event_type: type[EventType]) -> str:
    """Return the title of the family `name` of this event type, e.g. `Requests and reviews`."""
    for cls in event_type.__mro__:
        if _has_topic(cls) and topic_name(cls) == name and cls.__dict__.get("family_title"):
            return str(cls.__dict__["family_title"])
    words = name.rpartition(".")[2].replace("_", " ").removesuffix(" event")
    return words[:1].upper() + words[1:]


def _has_topic(cls: type) -> bool:
    return issubclass(cls, EventType) and cls is not EventType
