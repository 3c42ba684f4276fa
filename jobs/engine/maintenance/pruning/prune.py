"""Delete rows past their retention, in small batches and for a bounded time."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import structlog
from django.db import DatabaseError

from tailrace.db import clock, connections
from tailrace.db.query import execute, query
from tailrace.db.sql.plans import probe
from tailrace.environment.conf import conf
from tailrace.environment.discovery import subclasses
from tailrace.jobs.engine.maintenance.pruning.history import (
    BATCH,
    TABLES_OF_JOBS,
    drop_past,
    in_batches,
)
from tailrace.jobs.runtime import audit
from tailrace.jobs.runtime.retention import KeepEvents

log = structlog.get_logger(__name__)

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
    """Delete old jobs, events and records; return the number of deleted rows of each kind. If a
    kind fails, for example because its rows are locked, the others are still pruned."""
    deadline = time.monotonic() + SECONDS
    days, failed_days = conf.JOBS_RETENTION_DAYS, conf.JOBS_FAILED_RETENTION_DAYS
    event_days = conf.EVENTS_RETENTION_DAYS
    kinds = {
        # Before their days: a flow is deleted with all of its jobs, or not yet.
        "flows": partial(_prune_flows, days, failed_days, deadline),
        "days of the history": partial(drop_past, days, deadline),
        "completed jobs": partial(in_batches, _DELETE_DONE, deadline, days=days),
        "failed jobs": partial(in_batches, _DELETE_FAILED, deadline, days=failed_days),
        "groups of failures": partial(in_batches, _DELETE_GROUPS, deadline, days=failed_days),
        # A search value is kept until both its job and its event are deleted.
        "values to search for": partial(
            in_batches, _DELETE_VALUES, deadline, days=max(days, failed_days, event_days)
        ),
        "groups of tasks": partial(in_batches, _DELETE_TASK_GROUPS, deadline, days=days),
        "events": partial(_prune_events, event_days, deadline),
        "requests in the log": partial(
            in_batches, _DELETE_REQUESTS, deadline, actions=list(audit.REQUESTS), days=failed_days
        ),
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


_DELETE_PARTS = ",\n".join(
    f"of_{table} AS (DELETE FROM {table} t USING {{of}} WHERE {probe('t.job_id', '{of}.id')})"
    for table in TABLES_OF_JOBS
)
_DELETE_JOBS = f"""
WITH old AS MATERIALIZED (
  SELECT id FROM tailrace_jobs_live
  WHERE finished_at < {clock.NOW} - make_interval(days => %(days)s)
    AND {{condition}}
  ORDER BY finished_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED
),
{_DELETE_PARTS.format(of="old")}
DELETE FROM tailrace_jobs_live j USING old WHERE {probe("j.id", "old.id")}
"""


# The conditions match indexes on `finished_at`. A job of a flow is deleted with its flow.
_DELETE_DONE = _DELETE_JOBS.format(
    condition="state <> 'failed' AND finished_at IS NOT NULL AND flow_id IS NULL"
)
_DELETE_FAILED = _DELETE_JOBS.format(condition="state = 'failed' AND flow_id IS NULL")

FLOWS = 50
"""Flows that one statement looks at."""
JOBS_OF_FLOWS = 20_000
"""Jobs that one statement deletes with their flows; more if a single flow has more."""
_OLD_FLOWS = f"""
SELECT f.id, jobs.unfinished IS NOT TRUE AND coalesce(jobs.ended, f.created_at) < {clock.NOW}
    - make_interval(days => CASE WHEN jobs.failed THEN %(failed_days)s ELSE %(days)s END),
  jobs.count
FROM (
  SELECT id, created_at FROM tailrace_jobs_flow WHERE id > %(beyond)s ORDER BY id LIMIT {FLOWS}
) f, LATERAL (
  SELECT max(j.finished_at) AS ended, bool_or(j.state = 'failed') AS failed,
    bool_or(j.state IN ('waiting', 'pending', 'running')) AS unfinished, count(*) AS count
  FROM tailrace_jobs_job j WHERE j.flow_id = f.id
) jobs
WHERE f.created_at < {clock.NOW} - make_interval(days => %(days)s)
ORDER BY f.id
"""
_DELETE_FLOWS = f"""
WITH old AS MATERIALIZED (
  SELECT f.id FROM tailrace_jobs_flow f
  WHERE f.id = ANY(%(ids)s::bigint[]) AND NOT EXISTS (  -- it may have been retried just now
    SELECT 1 FROM tailrace_jobs_live j
    WHERE j.flow_id = f.id AND j.state IN ('waiting', 'pending', 'running'))
  ORDER BY f.id FOR UPDATE SKIP LOCKED
),
jobs AS (
  DELETE FROM tailrace_jobs_job j USING old WHERE {probe("j.flow_id", "old.id")} RETURNING j.id
),
{_DELETE_PARTS.format(of="jobs")}
DELETE FROM tailrace_jobs_flow f USING old WHERE {probe("f.id", "old.id")}
"""


def _prune_flows(days: int, failed_days: int, deadline: float) -> int:
    """Delete flows that ended before their retention, the oldest first."""
    total, beyond = 0, 0
    while time.monotonic() < deadline:
        rows = query(_OLD_FLOWS, beyond=beyond, days=days, failed_days=failed_days)
        for ids in _in_portions([(id, jobs) for id, is_over, jobs in rows if is_over]):
            total += execute(_DELETE_FLOWS, ids=ids)
        if len(rows) < FLOWS:
            break
        beyond = rows[-1][0]
    return total


def _in_portions(flows: list[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield the ids of flows whose jobs one statement deletes. `flows`: ids and numbers of jobs."""
    portion, size = list[int](), 0
    for id, jobs in flows:
        if portion and size + jobs > JOBS_OF_FLOWS:
            yield portion
            portion, size = [], 0
        portion.append(id)
        size += jobs
    if portion:
        yield portion


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


# The other rows are deleted with their jobs.
_DELETE_TASK_GROUPS = f"""
DELETE FROM tailrace_jobs_celerytask WHERE task_id = ANY(ARRAY(
  SELECT task_id FROM tailrace_jobs_celerytask
  WHERE job_id IS NULL AND created_at < {clock.NOW} - make_interval(days => %(days)s)
  ORDER BY created_at LIMIT {BATCH} FOR UPDATE SKIP LOCKED))
"""


_DELETE_REQUESTS = f"""
DELETE FROM django_admin_log WHERE id IN (
  SELECT l.id FROM django_content_type t JOIN django_admin_log l ON l.content_type_id = t.id
  WHERE t.app_label = 'tailrace_jobs' AND t.model = 'job' AND l.change_message = ANY(%(actions)s)
    AND l.action_time < {clock.NOW} - make_interval(days => %(days)s)
  LIMIT {BATCH} FOR UPDATE OF l SKIP LOCKED)
"""


def _prune_records(table: str, column: str, deadline: float) -> int:
    order = f"ORDER BY {column}" if table in BY_INDEX else ""
    statement = f"""
        DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM {table}
          WHERE {column} < {clock.NOW} - make_interval(days => %(days)s)
          {order} LIMIT {BATCH} FOR UPDATE SKIP LOCKED)"""
    return in_batches(statement, deadline, days=conf.JOBS_RECORDS_RETENTION_DAYS)


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
        f"AND NOT EXISTS (SELECT 1 FROM {model._meta.db_table} x WHERE x.event_id = old.id)"
        for cls in subclasses(KeepEvents)
        for model in cls.models
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
