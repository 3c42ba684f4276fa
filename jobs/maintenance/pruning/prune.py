"""Delete rows past their retention, in small batches and for a bounded time."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.db import DatabaseError

from tailrace.db import clock, connections
from tailrace.db.query import execute, query
from tailrace.db.sql.plans import probe
from tailrace.jobs.maintenance.pruning import history
from tailrace.jobs.maintenance.retention import tables_that_keep_events
from tailrace.jobs.operations import audit

log = structlog.get_logger(__name__)

BATCH = 2000
SECONDS = 60
"""A run ends after this time; the next run continues."""

RECORDS = {
    "tailrace_jobs_sweeprun": "started_at",
    "tailrace_jobs_slot": "recorded_at",
    "tailrace_jobs_throughput": "minute",
    "tailrace_jobs_failurehour": "hour",
    "tailrace_jobs_replay": "at",
    "tailrace_jobs_replayedjob": "at",
    "tailrace_jobs_pulse": "at",
    "tailrace_jobs_requestkey": "created_at",
    "tailrace_jobs_bucket": "at",  # old buckets are full, and so is a bucket without a row
}
"""Tables of records, and the column with the time of each record."""
BY_INDEX = {"tailrace_jobs_sweeprun", "tailrace_jobs_slot"}
"""Tables with an index on that column: without ORDER BY, a planner without statistics would read
the whole table."""


def prune() -> dict[str, int]:
    """Delete old jobs, events and records; return the number of deleted rows of each kind.

    If a kind fails, for example because its rows are locked, the other kinds are still pruned.
    """
    deadline = time.monotonic() + SECONDS
    kinds: dict[str, Callable[[], int]] = {
        "days of the history": lambda: history.drop_past(settings.JOBS_RETENTION_DAYS, deadline),
        "completed jobs": lambda: _prune_jobs(
            "state <> 'failed' AND finished_at IS NOT NULL", settings.JOBS_RETENTION_DAYS, deadline
        ),
        "failed jobs": lambda: _prune_jobs(
            "state = 'failed'", settings.JOBS_FAILED_RETENTION_DAYS, deadline
        ),
        "groups of failures": lambda: _delete_all(
            _DELETE_GROUPS, deadline, days=settings.JOBS_FAILED_RETENTION_DAYS
        ),
        "values to search for": lambda: _delete_all(
            _DELETE_VALUES, deadline, days=_longest_retention()
        ),
        "events": lambda: _prune_events(settings.EVENTS_RETENTION_DAYS, deadline),
        "requests in the log": lambda: _prune_requests(deadline),
    } | {
        table: partial(_prune_records, table, column, deadline) for table, column in RECORDS.items()
    }
    deleted = {kind: _guarded(kind, delete) for kind, delete in kinds.items()}
    log.info("prune.done", **{kind.replace(" ", "_"): count for kind, count in deleted.items()})
    return deleted


def _guarded(kind: str, delete: Callable[[], int]) -> int:
    try:
        return delete()
    except DatabaseError as error:
        log.warning("prune.failed", kind=kind, error=str(error).strip())
        connections.check_at_next_use()
        return 0


_DELETE_JOBS = f"""
WITH old AS MATERIALIZED (
  SELECT id FROM tailrace_jobs_live
  WHERE finished_at < {clock.NOW} - make_interval(days => %(days)s)
    AND {{condition}}
  ORDER BY finished_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED
),
attempts AS (DELETE FROM tailrace_jobs_attempt a USING old WHERE {probe("a.job_id", "old.id")}),
logs AS (DELETE FROM tailrace_jobs_loglines l USING old WHERE {probe("l.job_id", "old.id")})
DELETE FROM tailrace_jobs_live j USING old WHERE {probe("j.id", "old.id")}
"""


def _prune_jobs(condition: str, days: int, deadline: float) -> int:
    """Delete jobs in the live partition; `condition` must match an index on `finished_at`."""
    return _delete_all(_DELETE_JOBS.format(condition=condition), deadline, days=days)


# The failed jobs of a group are at least as old as its last failure, so they are deleted by then,
# unless another transaction has locked them.
_DELETE_GROUPS = f"""
DELETE FROM tailrace_jobs_failuregroup WHERE id IN (
  SELECT g.id FROM tailrace_jobs_failuregroup g
  WHERE g.last_seen_at < {clock.NOW} - make_interval(days => %(days)s)
  ORDER BY g.last_seen_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED)
"""

_DELETE_VALUES = f"""
DELETE FROM tailrace_jobs_searchvalue WHERE id IN (
  SELECT id FROM (SELECT id, at FROM tailrace_jobs_searchvalue ORDER BY id LIMIT {BATCH}) oldest
  WHERE at < {clock.NOW} - make_interval(days => %(days)s))
"""


def _longest_retention() -> int:
    """Return the days after which the job and the event of a search value are deleted."""
    return max(
        settings.JOBS_RETENTION_DAYS,
        settings.JOBS_FAILED_RETENTION_DAYS,
        settings.EVENTS_RETENTION_DAYS,
    )


_DELETE_REQUESTS = f"""
DELETE FROM django_admin_log WHERE id IN (
  SELECT l.id FROM django_content_type t JOIN django_admin_log l ON l.content_type_id = t.id
  WHERE t.app_label = 'tailrace_jobs' AND t.model = 'job' AND l.change_message = ANY(%(actions)s)
    AND l.action_time < {clock.NOW} - make_interval(days => %(days)s)
  LIMIT {BATCH} FOR UPDATE OF l SKIP LOCKED)
"""


def _prune_requests(deadline: float) -> int:
    days = settings.JOBS_FAILED_RETENTION_DAYS
    return _delete_all(_DELETE_REQUESTS, deadline, actions=list(audit.REQUESTS), days=days)


def _prune_records(table: str, column: str, deadline: float) -> int:
    order = f"ORDER BY {column}" if table in BY_INDEX else ""
    statement = f"""
        DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM {table}
          WHERE {column} < {clock.NOW} - make_interval(days => %(days)s)
          {order} LIMIT {BATCH} FOR UPDATE SKIP LOCKED)"""
    return _delete_all(statement, deadline, days=settings.JOBS_RECORDS_RETENTION_DAYS)


def _delete_all(statement: str, deadline: float, **params: Any) -> int:
    """Repeat a statement that deletes up to BATCH rows, until no rows are left or at `deadline`."""
    total = 0
    while time.monotonic() < deadline:
        count = execute(statement, **params)
        total += count
        if count < BATCH:
            break
    return total


# Oldest ids first, along the primary key, until the end of the batch or the first event that is not
# old enough. An event is kept while it has jobs, or effects that refer to it as their cause.
_DELETE_EVENTS = f"""
DELETE FROM tailrace_events_event WHERE id IN (
  SELECT old.id FROM tailrace_events_event old
  WHERE old.id > %(beyond)s AND old.id <= %(last)s
    AND old.recorded_at < {clock.NOW} - make_interval(days => %(days)s)
    AND NOT EXISTS (SELECT 1 FROM tailrace_jobs_job j WHERE j.event_id = old.id)
    AND NOT EXISTS (SELECT 1 FROM tailrace_events_event f WHERE f.cause_id = old.id)
    {{kept}}
  FOR UPDATE OF old SKIP LOCKED
)
"""
_LAST_OF_BATCH = f"""
SELECT max(id), bool_and(recorded_at < {clock.NOW} - make_interval(days => %(days)s)) FROM (
  SELECT id, recorded_at FROM tailrace_events_event WHERE id > %(beyond)s ORDER BY id LIMIT {BATCH}
) batch
"""


def _prune_events(days: int, deadline: float) -> int:
    """Delete old events in batches, from the oldest on; events that must be kept are skipped."""
    kept = (
        f"AND NOT EXISTS (SELECT 1 FROM {table} x WHERE x.event_id = old.id)"
        for table in tables_that_keep_events()
    )
    statement = _DELETE_EVENTS.format(kept=" ".join(kept))
    total, beyond = 0, 0
    while time.monotonic() < deadline:
        [(last, all_old)] = query(_LAST_OF_BATCH, beyond=beyond, days=days)
        if last is None:
            break
        total += execute(statement, beyond=beyond, last=last, days=days)
        beyond = last
        if not all_old:
            break
    return total
