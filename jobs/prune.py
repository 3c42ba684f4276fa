"""prune: delete what is past retention, in small batches, for a bounded time."""

import time
from collections.abc import Callable

import structlog
from django.conf import settings
from django.db import connection

from events import clock

log = structlog.get_logger(__name__)

BATCH = 2000
SECONDS = 60
"""A run ends after this; the next one goes on."""

_JOBS = f"""
WITH old AS MATERIALIZED (
  SELECT id FROM jobs_job
  WHERE finished_at < {clock.NOW} - make_interval(days => %(days)s)
    AND state = ANY(%(states)s)
    AND finished_at IS NOT NULL
  ORDER BY finished_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED
),
attempts AS (DELETE FROM jobs_attempt a USING old WHERE a.job_id = old.id)
DELETE FROM jobs_job j USING old WHERE j.id = old.id
"""

_kept: dict[str, str] = {}


def keep_events(name: str, condition: str) -> None:
    """Let events stay, whatever their age, while a row of another room refers to them.

    `condition` is SQL on `old.id`, an event's id, that one probe of an index answers; `name` says
    whose it is.
    """
    _kept[name] = condition


# Oldest ids first: a walk along the primary key that stops at the batch, or where events become
# too young. An event stays while it has jobs, or effects that say it caused them.
_EVENTS = f"""
DELETE FROM events_event WHERE id IN (
  SELECT old.id FROM (
    SELECT id, recorded_at FROM events_event WHERE id > %(beyond)s ORDER BY id LIMIT {BATCH}
  ) old
  WHERE old.recorded_at < {clock.NOW} - make_interval(days => %(days)s)
    AND NOT EXISTS (SELECT 1 FROM jobs_job j WHERE j.event_id = old.id)
    AND NOT EXISTS (SELECT 1 FROM events_event f WHERE f.cause_id = old.id)
    {{kept}}
)
"""


def prune() -> dict[str, int]:
    """Delete old jobs, events and records; return how many rows of each kind went."""
    until = time.monotonic() + SECONDS
    done = {"completed": ["completed", "skipped", "cancelled"], "failed": ["failed"]}
    gone = {
        f"{kind} jobs": _repeat(until, lambda kind=kind: _jobs(done[kind], _days(kind)))  # type: ignore[misc]
        for kind in done
    }
    gone["events"] = _events(until)
    for table, column in _RECORDS.items():
        gone[table] = _repeat(until, lambda t=table, c=column: _records(t, c))  # type: ignore[misc]
    log.info("prune.done", **{kind.replace(" ", "_"): count for kind, count in gone.items()})
    return gone


_RECORDS = {
    "jobs_sweeprun": "started_at",
    "jobs_slot": "recorded_at",
    "jobs_throughput": "minute",
    "jobs_pulse": "at",
    "jobs_bucket": "at",  # full again by then, as one that is not there
}


def _days(kind: str) -> int:
    return int(
        settings.JOBS_RETENTION_DAYS if kind == "completed" else settings.JOBS_FAILED_RETENTION_DAYS
    )


def _repeat(until: float, delete: Callable[[], int]) -> int:
    total = 0
    while time.monotonic() < until:
        count = delete()
        total += count
        if count < BATCH:
            break
    return total


def _jobs(states: list[str], days: int) -> int:
    return _execute(_JOBS, {"states": states, "days": days})


def _events(until: float) -> int:
    """Walk from the oldest event on, batch by batch, past those that are kept."""
    total, beyond = 0, 0
    days = settings.EVENTS_RETENTION_DAYS
    delete = _EVENTS.format(kept=" ".join(f"AND NOT ({one})" for one in _kept.values()))
    while time.monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute(
                f"""SELECT max(id), bool_and(recorded_at
                      < {clock.NOW} - make_interval(days => %(days)s)) FROM (
                      SELECT id, recorded_at FROM events_event WHERE id > %(beyond)s
                      ORDER BY id LIMIT {BATCH}) batch""",
                clock.params() | {"beyond": beyond, "days": days},
            )
            last, all_old = cursor.fetchone()
        if last is None:
            break
        total += _execute(delete, {"beyond": beyond, "days": days})
        beyond = last
        if not all_old:
            break
    return total


def _records(table: str, column: str) -> int:
    return _execute(
        f"""DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM {table}
            WHERE {column} < {clock.NOW} - make_interval(days => %(days)s) LIMIT {BATCH})""",
        {"days": settings.JOBS_RECORDS_RETENTION_DAYS},
    )


def _execute(statement: str, params: dict[str, object]) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, clock.params() | params)
        return int(cursor.rowcount)
