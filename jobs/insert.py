"""The one statement that makes jobs, for fan-out, enqueue, schedules and the sweeper."""

from dataclasses import dataclass, fields
from datetime import datetime

from events import clock
from events.arrays import array, numbers
from events.hot import hot_cursor
from jobs.states import State

KEY_LIMIT = 600
"""Characters of a routing key, a lane or a unique key: an index takes no longer ones."""


class InvalidJob(ValueError):
    """A job cannot be made as it was asked for; nothing was."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """A row to be; `delay` is in seconds, `payload` JSON text. InvalidJob if a key is too long."""

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
    """Why it is `failed` from the start; empty for all others."""

    def __post_init__(self) -> None:
        for name in ("routing_key", "lane", "unique_key"):
            if (length := len(getattr(self, name) or "")) > KEY_LIMIT:
                raise InvalidJob(
                    f"{self.handler}: {name} has {length} characters, {KEY_LIMIT} at most"
                )


_COLUMNS = tuple(field.name for field in fields(NewJob))
_NUMBERS = {"event_id", "priority", "delay", "after_id", "schedule_id"}

# Conflicts: (event, handler, routing_key) is owed already, or an unstarted job has the unique key.
_INSERT = f"""
INSERT INTO jobs_job (handler, event_id, routing_key, payload, state, priority, lane, due_at,
                      attempt, claim_no, worker, isolate, after_id, unique_key, schedule_id, slot,
                      progress_note, error, created_at, finished_at, cancel_requested)
SELECT handler, event_id, routing_key, payload::jsonb, state, priority, lane,
       coalesce(due_at, {clock.NOW}) + make_interval(secs => delay),
       0, 0, '', false, after_id, unique_key, schedule_id, slot, '', error, {clock.NOW},
       CASE state WHEN 'failed' THEN {clock.NOW} END, false
FROM unnest(%(handler)s::text[], %(event_id)s::bigint[], %(routing_key)s::text[],
            %(payload)s::text[], %(state)s::text[], %(priority)s::int[], %(lane)s::text[],
            %(due_at)s::timestamptz[], %(delay)s::float8[], %(after_id)s::bigint[],
            %(unique_key)s::text[], %(schedule_id)s::bigint[], %(slot)s::timestamptz[],
            %(error)s::text[])
  AS new (handler, event_id, routing_key, payload, state, priority, lane, due_at, delay, after_id,
          unique_key, schedule_id, slot, error)
ON CONFLICT DO NOTHING
RETURNING id
"""


def insert_jobs(jobs: list[NewJob]) -> list[int]:
    """Insert the jobs in one statement; return the ids of those that were new."""
    if not jobs:
        return []
    params = {
        name: (numbers if name in _NUMBERS else array)([getattr(job, name) for job in jobs])
        for name in _COLUMNS
    }
    with hot_cursor() as cursor:
        cursor.execute(_INSERT, clock.params() | params)
        return [row[0] for row in cursor.fetchall()]
