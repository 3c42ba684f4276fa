"""Event types: what events exist and what they contain. Apps declare them in `event_types.py`."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tailrace.events.discovery import Described
from tailrace.events.errors import UnknownEventType
from tailrace.events.readers import NOBODY, Readers
from tailrace.events.suggest import did_you_mean

_registry: dict[str, type["EventType"]] = {}

_AS_STORED: dict[str, Any] = {"strict": False, "by_alias": True, "by_name": True}
"""How a payload is read again: JSON has text for times, and the name or the alias of a field."""


class EventType(Described):
    """A kind of event. Subclass it once per kind; a base class shared by several is a family.

    `name` is what is stored and shown, `Payload` the model that validates the payload, the
    docstring the description. A family sets `abstract = True` and is never published itself.

    A Payload that does not say what it does with unknown keys forbids them: a typing error in an
    optional field would be lost. `model_config = ConfigDict(extra="allow")` keeps them. The same is
    true of the models within it, when `publish` is given JSON.
    """

    name: ClassVar[str] = ""
    abstract: ClassVar[bool] = True
    schema_version: ClassVar[int] = 1

    store_defaults: ClassVar[bool] = True
    """Whether the stored JSON contains the defaults of fields that the publisher left out. False
    for a type whose JSON is passed on as it came, so that a missing key stays missing."""

    family_title: ClassVar[str] = ""
    """What people call the family that the class is; empty: words made of its name."""

    api_records: ClassVar[bool] = True
    """Whether the API records such events. False for those that only the platform itself knows."""

    searchable: ClassVar[Sequence[str]] = ()
    """Fields of the payload by whose values the jobs of such events are found, in the admin and by
    the API. The values are stored beside the event; the other types cost nothing."""

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
        if unknown := set(cls.searchable) - set(cls.Payload.model_fields):
            raise TypeError(f"event type {cls.name!r} has no field {min(unknown)!r} to search by")
        _registry[cls.name] = cls
        if "extra" not in cls.Payload.model_config:
            cls.Payload.model_config["extra"] = "forbid"
            cls.Payload.model_rebuild(force=True, raise_errors=False)

    @classmethod
    def load(cls, raw_payload: dict[str, Any]) -> BaseModel:
        """Return a stored payload as an instance of Payload, or raise ValidationError."""
        return load_payload(cls.Payload, raw_payload)

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return what the event is about, e.g. `home:alice/hello`; empty: nothing."""
        return ""

    @classmethod
    def actors(cls, payload: dict[str, Any]) -> set[str]:
        """Return the logins that the payload names as those who did it.

        An event of the API is refused if it names anybody but the user of its token.
        """
        return set()

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return who alone may read each of these Recorded events, by id; None: everybody.

        It is called once for all events of the types that inherit it, so it should not use `cls`.
        Nobody may read an event that is left out, and none if it raises: see
        `tailrace.events.visibility`.
        """
        return {event.id: None for event in events}

    @classmethod
    def request_readers(cls, events: Sequence[Any]) -> None:
        """Find out later who may read these events, whose readers are undecided. Jobs call it."""

    @classmethod
    def is_quiet(cls, event: Any) -> bool:
        """Whether this Recorded event is only recorded, such as one of a past that is read late:
        only handlers with `quiet = True` get a job. The answer follows from the event alone."""
        return False

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        """Return what is odd about a payload from outside that is valid; empty: nothing.

        The event still has its jobs; operators see it in the list of flagged events.
        """
        return ""


class Quarantined(EventType):
    """An event from outside with an unknown type or an invalid payload, kept unchanged."""

    name = "events.quarantined"
    api_records = False

    class Payload(BaseModel):
        type: str
        payload: Any = None
        reason: str

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return that nobody may: what cannot be validated may name anything."""
        return {event.id: NOBODY for event in events}


def load_payload(model: type[BaseModel], raw_payload: Any) -> BaseModel:
    """Return a stored payload as an instance of its model, or raise ValidationError.

    Fields that it lacks get their defaults. Keys that the model forbids are left out: during a
    deployment, the old code reads events and jobs of the new code, too.
    """
    try:
        return model.model_validate(raw_payload, **_AS_STORED)
    except ValidationError as error:
        if all(item["type"] != "extra_forbidden" for item in error.errors()):
            raise
    return model.model_validate(raw_payload, extra="ignore", **_AS_STORED)


def all_types() -> list[type[EventType]]:
    """Return every concrete event type, by name."""
    return [_registry[name] for name in sorted(_registry)]


def find_type(name: str) -> type[EventType] | None:
    return _registry.get(name)


def get_type(name: str) -> type[EventType]:
    """Return the event type called `name`, or raise UnknownEventType with a suggestion."""
    event_type = _registry.get(name)
    if event_type is None:
        raise UnknownEventType(
            f"no event type is called {name!r}{did_you_mean(name, _registry)}"
            " (`manage.py event_catalog` lists them)"
        )
    return event_type
