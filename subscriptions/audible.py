"""Audible: what an event type says of those who may hear of it.

An event type is heard of when it names receiver roles. The attributes are read one by one, with
these defaults, so a type may inherit Audible or simply have some of them.
"""

from typing import Any, ClassVar

from events.publish import Recorded
from events.types import EventType
from subscriptions.lineage import family_of
from subscriptions.roles import Receivers


class Audible:
    """Mix into an event type, or into the base class of a family."""

    receiver_roles: ClassVar[list[str]] = []
    """Names of roles in their order: the first that fits a person is the reason."""
    can_mail: ClassVar[bool] = False
    can_rss: ClassVar[bool] = False
    can_web: ClassVar[bool] = False

    @classmethod
    def readers(cls, event: Recorded) -> Receivers | None:
        """Return who alone may read of it, where what it is about is hidden; None: everybody."""
        return None

    @classmethod
    def thread(cls, event: Recorded) -> str:
        """Return what the mails of one thread share, e.g. `request 12`; empty: the default."""
        return ""

    @classmethod
    def link(cls, event: Recorded) -> str:
        """Return the address where a person reads more; empty: none."""
        return ""


def readers_of(event: Recorded) -> Receivers | None:
    """Return who alone may read of the event, as its type says by `readers`; None: everybody."""
    answer: Any = getattr(event.event_type, "readers", None)
    found: Receivers | None = answer(event) if callable(answer) else None
    return found


def receiver_roles(event_type: type[EventType]) -> list[str]:
    return list(getattr(event_type, "receiver_roles", ()) or ())


def allows(event_type: type[EventType], channel: str) -> bool:
    """Say whether events of this type may go out by the channel: its `can_<channel>`, else that
    of the channel it is offered like."""
    from subscriptions.channels import everything

    answer = getattr(event_type, f"can_{channel}", None)
    if answer is None and (like := everything()[channel].offered_like):
        answer = getattr(event_type, f"can_{like}", None)
    return bool(answer)


def ask(event: Recorded, question: str) -> str:
    """Return what the event's type answers (`thread`, `link`), or an empty string."""
    answer: Any = getattr(event.event_type, question, None)
    return str(answer(event) or "") if callable(answer) else ""


def thread_of(event: Recorded) -> str:
    """Return what the events of one thread share: the type's own word, else family and subject."""
    family = family_of(event.event_type) if event.event_type else event.type
    return ask(event, "thread") or f"{family} {event.subject}"
