"""A call that was published, and its job before it is inserted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(slots=True, eq=False)
class Message:
    """A call that was published."""

    task: Any
    id: str
    args: list[Any]
    kwargs: dict[str, Any]
    headers: dict[str, Any]
    embed: dict[str, Any]
    queue: str
    priority: int | None = None
    reply_to: str = ""
    opaque: dict[str, str] | None = None
    """The arguments, if they are no JSON: see `opaque`."""
    properties: dict[str, Any] = field(default_factory=dict)
    """Other properties of the message, such as `app_id`."""
    nesting: int = 0
    """How often the task with this id was replaced."""
    delay: float = 0.0
    """Seconds, if the caller gave a countdown."""
    due_at: datetime | None = None
    expires_after: float | None = None
    """Seconds, if the caller gave the expiry so."""


@dataclass(slots=True, eq=False)
class Collected:
    """A job of the scope."""

    message: Message
    parents: Sequence["Collected"] = ()
    after_failure_of: Sequence["Collected"] = ()
    """It runs if one of these fails, and not if all of them succeed."""
    children: list[Any] = field(default_factory=list)
    """The results of the calls that Celery's worker would have made at its end, as tuples."""
    is_body: bool = False
    """Whether it is the body of a chord, and so has the error of a part as its own."""
    returns: bool = False
    """Whether another job needs its result."""
