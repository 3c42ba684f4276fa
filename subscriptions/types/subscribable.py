"""What an event type declares about its recipients.

People are notified of an event type that names receiver roles. The attributes are read one by one,
with these defaults, so a type may inherit Subscribable or simply have some of them.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from events.publish import Recorded
from events.types import EventType
from subscriptions.types.channel import all_channels
from subscriptions.types.roles import Receivers
from subscriptions.types.topics import family_of


class Subscribable:
    """Mix into an event type, or into the base class of a family."""

    receiver_roles: ClassVar[Sequence[str]] = ()
    """Names of roles, in order: the first one that a person holds is the reason."""
    can_mail: ClassVar[bool] = False
    can_rss: ClassVar[bool] = False
    can_web: ClassVar[bool] = False

    @classmethod
    def readers(cls, event: Recorded) -> Receivers | None:
        """Return the only ones who may read it, if its subject is hidden; None: everybody."""
        return None

    @classmethod
    def thread(cls, event: Recorded) -> str:
        """Return the key of the thread of mails, e.g. `request 12`; empty: the default."""
        return ""

    @classmethod
    def link(cls, event: Recorded) -> str:
        """Return the address where a person reads more; empty: none."""
        return ""


def readers_of(event: Recorded) -> Receivers | None:
    """Return the only ones who may read the event, from `readers` of its type; None: everybody."""
    readers: Any = getattr(event.event_type, "readers", None)
    receivers: Receivers | None = readers(event) if callable(readers) else None
    return receivers


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


def is_subscribable(event_type: type[EventType]) -> bool:
    """Return whether somebody can be notified of events of this type."""
    return bool(receiver_roles(event_type) and offered_channels(event_type))


def link_of(event: Recorded) -> str:
    """Return the address where a person reads more, or an empty string."""
    return _call(event, "link")


def thread_of(event: Recorded) -> str:
    """Return the key of the event's thread: the type's own, else its family and subject."""
    family = family_of(event.event_type) if event.event_type else event.type
    return _call(event, "thread") or f"{family} {event.subject}"


def _call(event: Recorded, method: str) -> str:
    function: Any = getattr(event.event_type, method, None)
    return str(function(event) or "") if callable(function) else ""
