"""backfill: jobs for events that were recorded before their handler was deployed.

A handler with `backfill = seconds` is owed jobs for events that are not older than that. Each of
its events is looked at once: `Queue.backfilled_to` is the last one.
"""

from typing import Any

from django.db import connection, transaction

from events import clock
from events.publish import RECORDED, Recorded
from events.types import all_types
from jobs import registry, wake
from jobs.fan_out import owed
from jobs.handler import Handler
from jobs.insert import insert_jobs

AT_ONCE = 20_000
"""Events per run: most have their job, and are passed over by an index probe each."""
SETTLING_SECONDS = 60
"""Younger events are left alone: an earlier id may still be uncommitted."""


def behind() -> list[str]:
    """Return the names of handlers that have events to look at."""
    return [handler.name for handler in _handlers() if _next_event(handler) is not None]


def advance(name: str) -> int:
    """Make the jobs that the next events lack; return how many were made."""
    handler = registry.get(name)
    with transaction.atomic():
        start, end = _window(handler)
        if end is None:
            return 0
        jobs = [
            job for event in _without_job(handler, start, end) for job in owed(event, [handler])
        ]
        made = len(insert_jobs(jobs))
        with connection.cursor() as cursor:
            cursor.execute("UPDATE jobs_queue SET backfilled_to = %s WHERE name = %s", [end, name])
        if made:
            wake.on_commit({name})
    return made


def _handlers() -> list[Handler]:
    return [h for h in registry.everything().values() if h.backfill is not None and h.on]


def _types(handler: Handler) -> list[str]:
    return [type.name for type in all_types() if issubclass(type, tuple(handler.on))]


_YOUNG_ENOUGH = f"""
e.type = ANY(%(types)s) AND e.id > coalesce(
  (SELECT backfilled_to FROM jobs_queue WHERE name = %(name)s), 0)
AND e.recorded_at > {clock.NOW} - make_interval(secs => %(backfill)s)
AND e.recorded_at < {clock.NOW} - make_interval(secs => {SETTLING_SECONDS})
"""


def _params(handler: Handler) -> dict[str, Any]:
    return clock.params() | {
        "types": _types(handler),
        "name": handler.name,
        "backfill": handler.backfill,
    }


def _next_event(handler: Handler) -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT e.id FROM events_event e WHERE {_YOUNG_ENOUGH} LIMIT 1", _params(handler)
        )
        row = cursor.fetchone()
    return row[0] if row else None


def _window(handler: Handler) -> tuple[int, int | None]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT min(id), max(id) FROM (
                  SELECT e.id FROM events_event e WHERE {_YOUNG_ENOUGH}
                  ORDER BY e.id LIMIT {AT_ONCE}
                ) chunk""",
            _params(handler),
        )
        start, end = cursor.fetchone()
    return start or 0, end


def _without_job(handler: Handler, start: int, end: int) -> list[Recorded]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""SELECT {RECORDED} FROM events_event e
                WHERE {_YOUNG_ENOUGH} AND e.id BETWEEN %(start)s AND %(end)s AND NOT EXISTS (
                  SELECT 1 FROM jobs_job j WHERE j.event_id = e.id AND j.handler = %(name)s)""",
            _params(handler) | {"start": start, "end": end},
        )
        return [Recorded.from_row(row) for row in cursor.fetchall()]
