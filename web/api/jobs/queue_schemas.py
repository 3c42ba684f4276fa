"""Queues, and the chain of an event, as the API returns them."""

from datetime import datetime
from typing import Annotated

from pydantic import Field

from tailrace.jobs.platform.inspection.queue_states import MEANINGS
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
    """A queue. Its counts stop at 10,000, which means 10,000 or more."""

    name: str
    """The name of the queue and of its handler."""
    state: QueueState
    pending: int
    """Jobs that have not started, due jobs included."""
    due: int
    """Jobs that could start now."""
    running: int
    failed: int
    completed: int
    """Jobs completed in the last hour."""
    oldest_due: datetime | None
    """The time since which the oldest due job has been due."""
    max_running: int | None
    """Maximum number of jobs that run at once; null: no limit."""
    rate_limit: float | None
    """Maximum number of jobs that start per second; null: no limit."""


class ChainedEvent(Out):
    """An event of a chain, with its jobs."""

    id: int
    type: str
    subject: str
    occurred_at: datetime
    parent: int | None
    """The event's cause in this list. If you may not read the cause, it is the nearest earlier
    cause that you may read. Null: no cause is in this list."""
    level: int
    """The number of events above this event in the tree of this list."""
    state: str
    """`no jobs`, `in progress`, `settled` or `has failures`."""
    jobs: list[JobOut] | None
    """The first eight jobs; null for a token without the scope `jobs:read`."""
    has_more_jobs: bool
    has_more_effects: bool
    """Whether the event caused events that are not in this list."""


class ChainOut(Out):
    """The causes and effects of an event."""

    events: list[ChainedEvent]
    """Each event before its effects: at most 60, plus up to 20 causes of the requested event."""
