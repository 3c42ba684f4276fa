"""Queues, and the chain of an event, as the API returns them."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from tailrace.jobs.inspection.queue_states import MEANINGS
from tailrace.web.api.jobs.schemas import JobOut
from tailrace.web.api.schemas import Out

QueueState = Annotated[
    str,
    Field(
        description=". ".join(f"`{state}`: {meaning}" for state, meaning in MEANINGS.items()),
        json_schema_extra={"enum": list(MEANINGS)},
    ),
]


class QueueOut(Out):
    """A queue. Its counts stop at 10,000, which means that many or more."""

    name: str
    """Also that of its handler."""
    state: QueueState
    pending: int
    """Jobs that wait to begin, the due ones included."""
    due: int
    """Jobs that could begin now."""
    running: int
    failed: int
    completed: int
    """In the last hour."""
    oldest_due: datetime | None
    """Since when the first due job has been due."""
    max_running: int | None
    """Jobs that run at once at most; null: no limit."""
    rate_limit: float | None
    """Jobs that begin in a second at most; null: no limit."""


class ChainedEvent(Out):
    """An event of a chain, with its jobs."""

    id: int
    type: str
    subject: str
    occurred_at: datetime
    parent: int | None
    """The event of this list that it is shown below: its cause, or what caused a cause that you may
    not read. Null: there is none in this list."""
    level: int
    """How many events of this list are above it."""
    state: str
    """`no jobs`, `in progress`, `settled` or `has failures`."""
    jobs: list[JobOut] | None
    """The first eight; null for a token without the scope `jobs:read`."""
    has_more_jobs: bool
    has_more_effects: bool
    """Whether it caused events that are not in this list."""


class ChainOut(Out):
    """What caused an event, and what it caused."""

    events: list[ChainedEvent]
    """Each before its effects: 60 at most, beside up to 20 causes of the event."""
