"""What all event types of the build service share: the payload's rules and the flags."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator

from events.types import EventType

if TYPE_CHECKING:
    from events.publish import Recorded
    from subscriptions.roles import Receivers

CUT_AT = 800
"""Characters that are kept of what people and tools write at length."""

_as_it_came: ContextVar[bool] = ContextVar("builds.as_it_came", default=False)


@contextmanager
def as_it_came() -> Iterator[None]:
    """Take payloads with missing and unknown keys: they come from outside, and get flagged."""
    token = _as_it_came.set(True)
    try:
        yield
    finally:
        _as_it_came.reset(token)


def _text(value: Any) -> Any:
    """Take numbers as text: the backend sends strings only, the bus sends both."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value) if isinstance(value, int | float) else value


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= CUT_AT else value[:CUT_AT] + "…"


Text = Annotated[str | None, BeforeValidator(_text)]
Cut = Annotated[Text, AfterValidator(_cut)]
Number = int | str | None


def _required(schema: dict[str, Any], model: type[BaseModel]) -> None:
    identity: tuple[str, ...] = getattr(model, "identity", ())
    if identity:
        schema["required"] = list(identity)
    schema["additionalProperties"] = False


class BuildsPayload(BaseModel):
    """Base of all payloads. Its fields stand in the order in which the bus sends them.

    Keys in `identity` are required and others than the declared ones are refused, except inside
    `as_it_came()`, where the event type's `problem` tells of them instead.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_required)
    identity: ClassVar[tuple[str, ...]] = ()
    """Keys without which one cannot tell what the event is about."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not _as_it_came.get():
            given = {key: getattr(self, key) for key in self.identity}
            if oddities := _oddities(type(self), given, self.model_extra or {}):
                raise ValueError(oddities)
        return self


def _oddities(model: type[BuildsPayload], given: dict[str, Any], extra: dict[str, Any]) -> str:
    missing = [key for key in model.identity if given.get(key) in (None, "")]
    parts = []
    if missing:
        parts.append(f"missing keys: {', '.join(missing)}")
    if extra:
        parts.append(f"unknown keys: {', '.join(sorted(extra))[:300]}")
    return "; ".join(parts)


class BuildsEvent(EventType):
    """Something happened in the build service."""

    abstract = True

    class Payload(BuildsPayload):
        pass

    raw_type: ClassVar[str] = ""
    """What the backend's notification log calls it; empty: it is not in the log."""
    bus_key: ClassVar[str] = ""
    """Routing key on the bus, without the namespace; empty: it is not announced."""
    project_log: ClassVar[bool] = False
    """Whether it stands in its project's log."""
    receiver_roles: ClassVar[tuple[str, ...]] = ()
    """Who may hear of it, in the order in which the roles are asked."""
    can_mail: ClassVar[bool] = False
    can_web: ClassVar[bool] = False
    can_rss: ClassVar[bool] = False
    wire_keys: ClassVar[tuple[str, ...]] = ()
    """The payload's keys in the order in which the bus sends them."""
    actor_keys: ClassVar[tuple[str, ...]] = ("sender", "user", "who", "author", "commenter")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.wire_keys = tuple(cls.Payload.model_fields)

    @classmethod
    def actor(cls, payload: dict[str, Any]) -> str:
        """Return who did it, a login; empty if the payload does not say."""
        return next((str(payload[key]) for key in cls.actor_keys if payload.get(key)), "")

    @classmethod
    def readers(cls, event: "Recorded") -> "Receivers | None":
        """Return who alone may read of it, where a project that it names is hidden."""
        from domains.builds.hidden import readers

        return readers(event)

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return `project/package`, or the project alone, or nothing."""
        project, package = payload.get("project"), payload.get("package")
        return f"{project}/{package}" if project and package else project or ""

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        """Name the keys that are missing and those that nobody knows."""
        extra = {key: value for key, value in payload.items() if key not in cls.wire_keys}
        return _oddities(cls.Payload, payload, extra)


def numbered(kind: str, number: Any) -> str:
    """Return the subject of something that has a number, e.g. `request/42`."""
    return f"{kind}/{number}" if number not in (None, "") else ""
