"""What an event type declares about its recipients.

People are notified of an event type that names receiver roles. The attributes are read one by one,
with these defaults, so a type may inherit Subscribable or simply have some of them.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from tailrace.events.publish import Recorded
from tailrace.events.topics import family_of
from tailrace.events.types import EventType
from tailrace.subscriptions.types.channel import all_channels

MAX_HEADERS = 70
_HEADER = re.compile(r"X-[A-Za-z0-9_-]{1,60}")


class Subscribable:
    """Mix into an event type, or into the base class of a family."""

    receiver_roles: ClassVar[Sequence[str]] = ()
    """Names of roles, in order: the first one that a person holds is the reason."""
    can_mail: ClassVar[bool] = False
    can_rss: ClassVar[bool] = False
    can_web: ClassVar[bool] = False
    default_pace: ClassVar[str] = "instant"
    """Of the defaults of channels that have digests: `instant`, `hourly`, `daily` or `weekly`."""

    @classmethod
    def notifies(cls, event: Recorded) -> bool:
        """Return whether anybody may be notified of this event: False where that is sure."""
        return True

    @classmethod
    def unknown_receivers(cls, events: Sequence[Recorded]) -> set[int]:
        """Return the ids of those of these events of which it is not known yet who holds a role,
        and find it out: their jobs wait, for an hour at most, and call it again.

        It is called once for all events of the types that inherit it, so it should not use `cls`.
        """
        return set()

    @classmethod
    def thread(cls, event: Recorded) -> str:
        """Return the key of the thread of mails, e.g. `request 12`; empty: the default."""
        return ""

    @classmethod
    def mail_headers(cls, event: Recorded) -> Mapping[str, str]:
        """Return more headers of its mails, by names that begin with X-. Values are cleaned."""
        return {}

    @classmethod
    def mail_contexts(cls, events: Sequence[Recorded]) -> Mapping[int, Mapping[str, Any] | None]:
        """Return what the templates of a mail are given beside the event, by the event's id.

        None: it is being fetched; the mail is put off for some seconds and this is called again.
        """
        return {}

    @classmethod
    def link(cls, event: Recorded) -> str:
        """Return the address where a person reads more; empty: none."""
        return ""


def receiver_roles(event_type: type[EventType]) -> list[str]:
    return list(getattr(event_type, "receiver_roles", ()) or ())


def offered_channels(event_type: type[EventType]) -> list[str]:
    """Return the channels by which events of this type may be sent: those whose `can_<channel>` is
    true, or missing while that of the channel it is offered like is true."""
    return [
        key
        for key, channel in all_channels().items()
        if getattr(
            event_type, f"can_{key}", getattr(event_type, f"can_{channel.offered_like}", False)
        )
    ]


def may_notify(event: Recorded) -> bool:
    """Return whether somebody can be notified of this event."""
    event_type: Any = event.event_type
    if event_type is None or not is_subscribable(event_type):
        return False
    notifies: Any = getattr(event_type, "notifies", None)
    return notifies is None or bool(notifies(event))


def unknown_receivers(events: Iterable[Recorded]) -> set[int]:
    """Return the ids of those events of which it is not known yet who holds a role."""
    by_method: dict[Any, tuple[Any, list[Recorded]]] = {}
    for event in events:
        method: Any = getattr(event.event_type, "unknown_receivers", None)
        if method is not None:
            key = getattr(method, "__func__", method)
            by_method.setdefault(key, (method, []))[1].append(event)
    return {id for method, group in by_method.values() for id in method(group)}


def is_subscribable(event_type: type[EventType]) -> bool:
    """Return whether somebody can be notified of events of this type."""
    return bool(receiver_roles(event_type) and offered_channels(event_type))


def link_of(event: Recorded) -> str:
    """Return the address where a person reads more, or an empty string."""
    return _call(event, "link")


def mail_headers_of(event: Recorded) -> dict[str, str]:
    """Return the headers that the event's type adds to its mails, at most MAX_HEADERS."""
    headers: Any = getattr(event.event_type, "mail_headers", None)
    values = headers(event).items() if callable(headers) else ()
    named = [(name, str(value)) for name, value in values if value not in (None, "")]
    return dict([pair for pair in named if _HEADER.fullmatch(pair[0])][:MAX_HEADERS])


def mail_contexts_of(events: Iterable[Recorded]) -> dict[int, Mapping[str, Any] | None]:
    """Return what the templates of these events' mails are given beside the event, by its id;
    None: not yet."""
    by_type: dict[Any, dict[int, Recorded]] = defaultdict(dict)
    for event in events:
        by_type[event.event_type][event.id] = event
    contexts: dict[int, Mapping[str, Any] | None] = {}
    for event_type, group in by_type.items():
        function: Any = getattr(event_type, "mail_contexts", None)
        own = function(list(group.values())) if callable(function) else {}
        contexts |= {id: own.get(id, {}) for id in group}
    return contexts


def thread_of(event: Recorded) -> str:
    """Return the key of the event's thread: the type's own, else its family and subject."""
    family = family_of(event.event_type) if event.event_type else event.type
    return _call(event, "thread") or f"{family} {event.subject}"


def _call(event: Recorded, method: str) -> str:
    function: Any = getattr(event.event_type, method, None)
    return str(function(event) or "") if callable(function) else ""
