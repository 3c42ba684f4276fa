"""A job to insert, and the result of an insert."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime

from tailrace.db.sql.arrays import arrays
from tailrace.jobs.runtime.states import State

KEY_LIMIT = 600
"""Maximum length of a routing key, a lane or a unique key, in characters. The size of index entries
is limited."""


class InvalidJob(ValueError):
    """The job's arguments are invalid; no job was created."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to insert. `delay` is in seconds, `payload` is JSON text. Raises InvalidJob if a key is
    too long."""

    handler: str
    event_id: int | None = None
    routing_key: str = ""
    payload: str | None = None
    state: str = State.PENDING.value
    priority: int = 1
    lane: str = ""
    due_at: datetime | None = None
    delay: float = 0.0
    after_id: int | None = None
    unique_key: str | None = None
    schedule_id: int | None = None
    slot: datetime | None = None
    error: str = ""
    """The reason if the job is inserted as `failed` or `skipped`; else empty."""

    def __post_init__(self) -> None:
        for name in ("routing_key", "lane", "unique_key"):
            if (length := len(getattr(self, name) or "")) > KEY_LIMIT:
                problem = f"has {length} characters; at most {KEY_LIMIT} are allowed"
                raise InvalidJob(f"{self.handler}: {name} {problem}")


@dataclass(slots=True)
class Inserted:
    """The new and the merged jobs of one call. All other jobs of the call exist already: their
    event has a job with the same handler and routing key."""

    ids: list[int] = field(default_factory=list)
    """The ids of the new jobs."""
    merged: dict[int, int] = field(default_factory=dict)
    """For each merged job, by its index in the call: the id of the job that it was merged into."""


_COLUMNS = tuple(field.name for field in fields(NewJob))
_NUMBERS = {"event_id", "priority", "delay", "after_id", "schedule_id"}


def columns_of(jobs: Sequence[NewJob]) -> dict[str, str]:
    return arrays(jobs, _COLUMNS, _NUMBERS)
