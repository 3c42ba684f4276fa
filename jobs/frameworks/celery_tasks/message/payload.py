"""The payload of a task's job: the call, as Celery's message has it."""

from typing import Any

from pydantic import BaseModel


class TaskPayload(BaseModel):
    id: str
    """The task's id, which the caller may choose. Empty in a schedule: each job gets its own."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    opaque: dict[str, str] | None = None
    """The arguments, if they are in a serializer of the project's own."""
    headers: dict[str, Any] = {}
    """Of the message, without headers that have their default value."""
    embed: dict[str, Any] = {}
    """`errbacks`, and the `callbacks`, `chain` and `chord` that are no jobs of their own."""
    priority: int | None = None
    """As the caller gave it."""
    reply_to: str = ""
    properties: dict[str, Any] = {}
    countdown: float = 0.0
    """Seconds from the end of the jobs that it waited for."""
    expires_after: float | None = None
    """Seconds, from the same time."""
    is_body: bool = False
    """Whether it is the body of a chord."""
    returns: bool = False
    """Whether another job needs the result, also if the call ignores it."""
