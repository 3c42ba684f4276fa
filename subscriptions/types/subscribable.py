"""The attributes of an event type that declare its recipients.

Users can be notified of an event type that names receiver roles. Each attribute is read on its own
and has a default, so a type may inherit Subscribable or define only some of the attributes.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tailrace.events.catalog.topics import family_of
from tailrace.events.publish import Recorded
from tailrace.events.types import EventType
from tailrace.subscriptions.types.channel import all_channels

MAX_HEADERS = 70
_HEADER = re.compile(r"X-[A-Za-z0-9_-]{1,60}")


class Subscribable:
    """Mix into an event type, or into the base class of a family."""

    receiver_roles: ClassVar[Sequence[str]] = ()
    """Names of roles, in order: a user is notified in the first role that applies."""
    can_mail: ClassVar[bool] = False
    can_rss: ClassVar[bool] = False
    can_web: ClassVar[bool] = False
    default_pace: ClassVar[str] = "instant"
    """The pace of default subscriptions by mail: `instant`, `hourly`, `daily` or `weekly`."""
    urgent: ClassVar[bool] = False
    """Whether events of the type are sent before others and at once: no limit of messages applies
    to them, and no digest, unless the recipient chose it for this type or its family."""

    @classmethod
    def notifies(cls, event: Recorded) -> bool:
        """Return False if certainly no user is to be notified of this event."""
        return True

    @classmethod
    def unknown_receivers(cls, events: Sequence[Recorded]) -> set[int]:
        """Return the ids of the events whose role holders are not known yet, and fetch them.

        The jobs of these events wait, for an hour at most, and this method is called again. It is
        called once for the events of all types that inherit it, so it should not use `cls`.
        """
        return set()

    @classmethod
    def thread(cls, event: Recorded) -> str:
        """Return the key of the event's mail thread, e.g. `request 12`; empty for the default."""
        return ""

    @classmethod
    def mail_headers(cls, event: Recorded) -> Mapping[str, str]:
        """Return additional mail headers, whose names begin with `X-`. The values are cleaned."""
        return {}

    @classmethod
    def mail_contexts(cls, events: Sequence[Recorded]) -> Mapping[int, Mapping[str, Any] | None]:
        """Return additional context for the mail templates, by the event's id.

        None means that the context is being fetched: the mail is postponed for some seconds, and
        this method is called again.
        """
        return {}

    @classmethod
    def link(cls, event: Recorded) -> str:
        """Return the URL of a page with more details, or an empty text."""
        return ""


def receiver_roles(event_type: type[EventType]) -> list[str]:
    return list(_declared(event_type, "receiver_roles"))


def offered_channels(event_type: type[EventType]) -> list[str]:
    """Return the channels by which events of this type may be sent (see ChannelType)."""
    return [
        key
        for key, channel in all_channels().items()
        if getattr(
            event_type, f"can_{key}", getattr(event_type, f"can_{channel.offered_like}", False)
        )
    ]


def may_notify(event: Recorded) -> bool:
    """Return whether users can be notified of this event."""
    event_type = event.event_type
    is_possible = event_type is not None and is_subscribable(event_type)
    return is_possible and bool(_declared(event_type, "notifies")(event))


def unknown_receivers(events: Iterable[Recorded]) -> set[int]:
    """Return the ids of the events whose role holders are not known yet."""
    by_method: dict[Any, tuple[Any, list[Recorded]]] = {}
    for event in events:
        method = _declared(event.event_type, "unknown_receivers")
        key = getattr(method, "__func__", method)
        by_method.setdefault(key, (method, []))[1].append(event)
    return {id for method, group in by_method.values() for id in method(group)}


def is_subscribable(event_type: type[EventType]) -> bool:
    """Return whether the type has receiver roles and offers a channel."""
    return bool(receiver_roles(event_type) and offered_channels(event_type))


def is_urgent(event_type: type[EventType] | None) -> bool:
    return bool(_declared(event_type, "urgent"))


def link_of(event: Recorded) -> str:
    """Return the URL of a page with more details, or an empty text."""
    return str(_declared(event.event_type, "link")(event) or "")


def mail_headers_of(event: Recorded) -> dict[str, str]:
    """Return the mail headers that the event's type adds, at most MAX_HEADERS."""
    values = _declared(event.event_type, "mail_headers")(event).items()
    named = [(name, str(value)) for name, value in values if value not in (None, "")]
    return dict([pair for pair in named if _HEADER.fullmatch(pair[0])][:MAX_HEADERS])


def mail_contexts_of(events: Iterable[Recorded]) -> dict[int, Mapping[str, Any] | None]:
    """Return the additional context of the events' mails by event id; None: it is being fetched."""
    by_type: dict[Any, dict[int, Recorded]] = defaultdict(dict)
    for event in events:
        by_type[event.event_type][event.id] = event
    contexts: dict[int, Mapping[str, Any] | None] = {}
    for event_type, group in by_type.items():
        own = _declared(event_type, "mail_contexts")(list(group.values()))
        contexts |= {id: own.get(id, {}) for id in group}
    return contexts


def thread_of(event: Recorded) -> str:
    """Return the key of the event's mail thread: from its type, else its family and subject."""
    family = family_of(event.event_type) if event.event_type else event.type
    return str(_declared(event.event_type, "thread")(event) or f"{family} {event.subject}")


def _declared(event_type: type[EventType] | None, name: str) -> Any:
    """Return an attribute of the event type, or its default in Subscribable."""
    return getattr(event_type, name, getattr(Subscribable, name))
