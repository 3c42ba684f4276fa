"""Event types: the base class, and the registry of all types. Apps declare them in
`event_types.py`."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from tailrace.environment.discovery import Described
from tailrace.environment.suggest import did_you_mean
from tailrace.events.errors import UnknownEventType
from tailrace.events.readers import NOBODY, Readers

_registry: dict[str, type["EventType"]] = {}

_AS_STORED: dict[str, Any] = {"strict": False, "by_alias": True, "by_name": True}
"""Validation options for stored JSON: times are text, and keys may be names or aliases."""


class EventType(Described):
    """The base class of event types. A base class shared by several types is a family.

    `name` is stored with each event, `Payload` validates the payload, and the docstring is the
    description. A family sets `abstract = True` and cannot be published.

    By default, a Payload forbids unknown keys, so that a typing error in an optional field is
    noticed. `model_config = ConfigDict(extra="allow")` keeps unknown keys. The same rule applies to
    models within the Payload, if `publish` is called with JSON.
    """

    name: ClassVar[str] = ""
    abstract: ClassVar[bool] = True
    schema_version: ClassVar[int] = 1

    store_defaults: ClassVar[bool] = True
    """Whether defaults of missing fields are stored in the JSON. Set False for a type whose JSON is
    forwarded unchanged, so that a missing key stays missing."""

    family_title: ClassVar[str] = ""
    """The title of the family, for people. Empty: a title made from the class name."""

    api_records: ClassVar[bool] = True
    """Whether clients may record such events by the API. False for the platform's own events."""

    searchable: ClassVar[Sequence[str]] = ()
    """Payload fields by whose values the admin and the API find the jobs of such events. The values
    are stored in a table of their own."""

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
        """Return an instance of Payload from stored JSON. Raises ValidationError."""
        return load_payload(cls.Payload, raw_payload)

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return the event's subject, e.g. `home:alice/hello`, or an empty string."""
        return ""

    @classmethod
    def actors(cls, payload: dict[str, Any]) -> set[str]:
        """Return the logins of the users who caused the event, according to the payload. The API
        refuses an event with a login other than that of the token's user."""
        return set()

    @classmethod
    def readers(cls, events: Sequence[Any]) -> Mapping[int, Readers | None]:
        """Return the readers of each of these Recorded events, by id; None if all users are. It is
        called once for the events of all types that inherit it, so it should not use `cls`. If an
        event is left out, or the method raises an error, no user may read the event: see
        `tailrace.events.privacy.visibility`."""
        return {event.id: None for event in events}

    @classmethod
    def request_readers(cls, events: Sequence[Any]) -> None:
        """Request the readers of these events, whose readers are undecided. Jobs call this."""

    @classmethod
    def is_quiet(cls, event: Any) -> bool:
        """Whether this Recorded event gets jobs only of handlers with `quiet = True`, as an event
        from the time before the first read of its source. The result must depend on nothing but the
        event."""
        return False

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        """Return a problem of a valid payload from outside, or "". The event still gets its jobs,
        and operators see it in the list of flagged events."""
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
        """Return no readers: an invalid payload may contain private data."""
        return {event.id: NOBODY for event in events}


def load_payload(model: type[BaseModel], raw_payload: Any) -> BaseModel:
    """Return an instance of the model from a stored payload. Raises ValidationError.

    Missing fields get their defaults. Unknown keys are ignored, since during a deployment the old
    code also reads events and jobs of the new code.
    """
    try:
        return model.model_validate(raw_payload, **_AS_STORED)
    except ValidationError as error:
        if all(item["type"] != "extra_forbidden" for item in error.errors()):
            raise
    return model.model_validate(raw_payload, extra="ignore", **_AS_STORED)


def all_types() -> list[type[EventType]]:
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
