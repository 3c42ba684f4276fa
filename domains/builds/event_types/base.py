"""The base classes of the build service's event types and payloads."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, model_validator

from tailrace.domains.builds.audience import visibility
from tailrace.domains.builds.audience.awaited import awaiting_metadata
from tailrace.domains.builds.backends.origin import is_past
from tailrace.domains.builds.event_types.cut_values import CUT
from tailrace.domains.builds.event_types.metric import Metric
from tailrace.domains.builds.event_types.web_pages import Page, page_of
from tailrace.events.publish import Recorded
from tailrace.events.readers import Readers
from tailrace.events.types import EventType
from tailrace.subscriptions.types.subscribable import Subscribable

MAX_TEXT = 800
"""Maximum number of characters that are stored of comments, file lists and errors."""

_incomplete_allowed: ContextVar[bool] = ContextVar("builds.incomplete_allowed", default=False)


@contextmanager
def allow_incomplete() -> Iterator[None]:
    """Accept payloads with missing or unknown keys inside this block: events from outside are
    flagged for such problems instead of refused."""
    token = _incomplete_allowed.set(True)
    try:
        yield
    finally:
        _incomplete_allowed.reset(token)


def _text(value: Any) -> Any:
    """Convert numbers to text: the backend sends only strings, the bus also sends numbers."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value) if isinstance(value, int | float) else value


def _cut(value: str | None) -> str | None:
    return value if value is None or len(value) <= MAX_TEXT else value[:MAX_TEXT] + "…"


Text = Annotated[str | None, BeforeValidator(_text)]
Cut = Annotated[Text, AfterValidator(_cut)]
Number = int | str | None


def _required(schema: dict[str, Any], model: type[BaseModel]) -> None:
    identity: tuple[str, ...] = getattr(model, "identity", ())
    if identity:
        schema["required"] = list(identity)
    schema["additionalProperties"] = False


class BuildsPayload(BaseModel):
    """Base class of all payloads. The order of the fields is their order in messages to the bus.

    Keys in `identity` are required and undeclared keys are refused, except in `allow_incomplete()`.
    """

    # Models are built when they are first used: a process uses few of the fifty types.
    model_config = ConfigDict(extra="allow", json_schema_extra=_required, defer_build=True)
    identity: ClassVar[tuple[str, ...]] = ()
    """Keys that identify the subject of the event."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if not _incomplete_allowed.get():
            values = {key: getattr(self, key) for key in self.identity}
            if problem := _problem(type(self), values, self.model_extra or {}):
                raise ValueError(problem)
        return self


def _problem(model: type[BuildsPayload], values: dict[str, Any], extra: dict[str, Any]) -> str:
    missing = [key for key in model.identity if values.get(key) in (None, "")]
    parts = []
    if missing:
        parts.append(f"missing keys: {', '.join(missing)}")
    if CUT in extra:
        parts.append(f"the entry was too big; these values were cut: {extra[CUT]}"[:300])
    if extra := {key: value for key, value in extra.items() if key != CUT}:
        parts.append(f"unknown keys: {', '.join(sorted(extra))[:300]}")
    return "; ".join(parts)


class BuildsEvent(Subscribable, EventType):
    """Something happened in the build service."""

    abstract = True
    family_title = "Build service"
    store_defaults = False

    class Payload(BuildsPayload):
        pass

    raw_type: ClassVar[str] = ""
    """The event type's name in the backend's notification log; empty if it is not in the log."""
    bus_key: ClassVar[str] = ""
    """Routing key on the bus, without the namespace; empty if it is not sent to the bus."""
    project_log: ClassVar[bool] = False
    """Whether each event becomes an entry in the log of its project."""
    wire_keys: ClassVar[tuple[str, ...]] = ()
    """The payload's keys in the order in which they are sent to the bus."""
    subject_from: ClassVar[tuple[str, str] | None] = None
    """Prefix and payload key of the subject, e.g. `("request", "number")` for `request/42`."""
    page_from: ClassVar[Page | None] = None
    """Path and payload keys of the event's page at OBS_WEB_URL, e.g. `("reports", "id")`; None: the
    page of the request, build, package, project or group that the payload names."""
    actor_keys: ClassVar[tuple[str, ...]] = ("sender", "user", "who", "author", "commenter")
    """Payload keys that may contain the login of the actor; the first key with a value counts."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.wire_keys = tuple(cls.Payload.model_fields)

    @classmethod
    def load(cls, raw_payload: dict[str, Any]) -> BaseModel:
        """Return a stored payload as its model. Keys that were missing at the source are None."""
        with allow_incomplete():
            return super().load(raw_payload)

    @classmethod
    def actor(cls, payload: dict[str, Any]) -> str:
        """Return the login of the user who caused the event; empty if unknown."""
        return next((str(payload[key]) for key in cls.actor_keys if payload.get(key)), "")

    @classmethod
    def actors(cls, payload: dict[str, Any]) -> set[str]:
        """Return the logins of all actors in the payload. The `author`, who is the author of the
        request, counts only if there is no other."""
        names = {key: str(payload[key]) for key in cls.actor_keys if payload.get(key)}
        if len(names) > 1:
            names.pop("author", None)
        return set(names.values())

    @classmethod
    def readers(cls, events: Sequence[Recorded]) -> Mapping[int, Readers | None]:
        """Return the users and groups that may read each event, by its id; None means everybody.
        Only events that name a hidden project are restricted."""
        return visibility.readers(events)

    @classmethod
    def is_quiet(cls, event: Recorded) -> bool:
        """Return whether the event is from before the first read of its backend's log."""
        return is_past(event)

    @classmethod
    def request_readers(cls, events: Sequence[Recorded]) -> None:
        """Enqueue a refresh of each project whose metadata was not read yet."""
        visibility.request_metadata(events)

    @classmethod
    def unknown_receivers(cls, events: Sequence[Recorded]) -> set[int]:
        """Return the ids of the events whose receivers depend on unread metadata, and enqueue its
        refresh. With old metadata, the notifications would go to the wrong people."""
        return awaiting_metadata(events)

    @classmethod
    def subject(cls, payload: dict[str, Any]) -> str:
        """Return `project/package`, `project`, or as `subject_from` declares; else empty."""
        if cls.subject_from:
            prefix, key = cls.subject_from
            return f"{prefix}/{payload[key]}" if payload.get(key) not in (None, "") else ""
        project, package = payload.get("project"), payload.get("package")
        return f"{project}/{package}" if project and package else project or ""

    @classmethod
    def link(cls, event: Recorded) -> str:
        """Return the URL of the event's page in the build service; empty without OBS_WEB_URL."""
        return page_of(event.raw_payload, cls.page_from)

    @classmethod
    def mail_headers(cls, event: Recorded) -> Mapping[str, str]:
        """Return the X-OBS-* headers of mails, as OBS's EventMailer sets them."""
        kind = cls.name.partition(".")[2]
        return {"X-OBS-event-type": kind, **cls.obs_headers(event.raw_payload)}

    @classmethod
    def obs_headers(cls, payload: dict[str, Any]) -> Mapping[str, str]:
        """Return the X-OBS-* headers that are specific to this event type."""
        return {}

    @classmethod
    def metric(cls, payload: dict[str, Any]) -> Metric | None:
        """Return the measurement of the event, if any, as the `metric_…` methods of OBS's class do
        (app/models/event/)."""
        return None

    @classmethod
    def problem(cls, payload: dict[str, Any]) -> str:
        """Return a text that names the missing, cut and unknown keys, or an empty string."""
        extra = {key: value for key, value in payload.items() if key not in cls.wire_keys}
        return _problem(cls.Payload, payload, extra)


def builds_type(event: Recorded) -> type[BuildsEvent] | None:
    """Return the event's type; None if it is not, or no longer, a type of the build service."""
    known = event.event_type
    return known if known is not None and issubclass(known, BuildsEvent) else None
