"""Move finished jobs to the history, so that claims, rescues and vacuum only read live jobs.

`tailrace_jobs_job` has a partition for live jobs (`tailrace_jobs_live`), in which jobs are created,
run and end, and a partition for each day (UTC) with the jobs that finished on that day. Failed jobs
stay in the live partition, because operators may replay them. When all jobs of a claim are
finished, its settlement moves them to the history (`engine.settling`). Other finished jobs are
moved some minutes later. The partition of a day past its retention is dropped, without deleting
rows.
"""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import structlog
from django.db import DatabaseError, transaction

from tailrace.db import clock, connections
from tailrace.db.engine_database import home
from tailrace.db.query import database_now, execute, query
from tailrace.db.sql.plans import probe
from tailrace.environment.conf import conf
from tailrace.jobs.engine.settling.settle import PREFIX, partition

log = structlog.get_logger(__name__)

DAYS_AHEAD = 7
"""Partitions are created for today and for this many days to come."""
BATCH = 2000
SECONDS = 5.0
"""A turn ends after this time; the next turn continues."""
AGE_SECONDS = 180
"""A job is moved this long after its end: then other code has seen that it is finished, and does
not need to lock its row."""
DROP_LOCK_MILLISECONDS = 300
"""How long a drop may wait for sessions that read the history: other sessions wait behind it."""
DROP_TRIES = 20
TABLES_OF_JOBS = (
    "tailrace_jobs_attempt", "tailrace_jobs_loglines", "tailrace_jobs_dependency",
    "tailrace_jobs_celerytask",
)  # fmt: skip
"""Tables with a column `job_id`, whose rows are deleted with their job."""


_DAYS = f"""
SELECT to_date(right(relname, 8), 'YYYYMMDD') AS day FROM pg_inherits
JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = 'tailrace_jobs_job'::regclass AND starts_with(relname, '{PREFIX}') ORDER BY day
"""
LAST_DAY = f"SELECT max(day) FROM ({_DAYS}) days"
"""SQL: the last day with a partition, a week ahead if upkeep works; NULL if there is none."""


def days() -> list[date]:
    """Return the days with a partition, oldest first."""
    return [day for (day,) in query(_DAYS)]


# The constraints let the planner skip the day in queries for other states, and avoid a scan when
# the partition is attached. Attaching blocks neither readers nor writers.
_CREATE = """
CREATE TABLE {name} (LIKE tailrace_jobs_job INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
  CHECK (done_on IS NOT NULL AND done_on = '{day}'),
  CHECK (finished_at IS NOT NULL AND state IN ('completed', 'skipped', 'cancelled')));
{indexes};
ALTER TABLE tailrace_jobs_job ATTACH PARTITION {name} FOR VALUES IN ('{day}')
"""
# Partial indexes on a state are of no use in a partition of finished jobs.
_INDEXES = """
SELECT c.relname, pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'tailrace_jobs_live'::regclass AND i.indisvalid
  AND coalesce(pg_get_expr(i.indpred, i.indrelid), '') !~ '\\mstate\\M'
ORDER BY c.relname
"""


def _indexes(day: date) -> dict[str, str]:
    """Return the statements that create the indexes of a day's partition, by index name: those of
    the live partition, including indexes that other apps have added."""
    statements = {}
    for index, definition in query(_INDEXES):
        begins, rest = definition.split(" USING ", 1)
        unique = "UNIQUE " if "UNIQUE" in begins else ""
        name = f"{index}_{day:%Y%m%d}"
        statements[name] = f'CREATE {unique}INDEX "{name}" ON {partition(day)} USING {rest}'
    return statements | {
        f"tailrace_job_ended_{day:%Y%m%d}": _INDEX_OF_ENDS.format(day=day, name=partition(day))
    }


# Jobs are moved to a day in the order of their ends, so a BRIN entry for 16 pages covers a minute.
_INDEX_OF_ENDS = """
CREATE INDEX "tailrace_job_ended_{day:%Y%m%d}" ON {name} USING brin (finished_at)
  WITH (pages_per_range = 16, autosummarize = on)"""


def make_partitions(wanted: Iterator[date] | None = None) -> list[date]:
    """Create the missing partitions of the wanted days, by default today and the next days; return
    these days. Two processes may do this at once."""
    today = database_now().date()
    wanted = wanted or (today + timedelta(days=number) for number in range(DAYS_AHEAD + 1))
    known = set(days())
    made = [day for day in wanted if day not in known]
    for day in made:
        with transaction.atomic(using=home()):
            execute("SELECT pg_advisory_xact_lock(hashtext('tailrace.jobs.history'))")
            if day not in days():
                indexes = ";\n".join(_indexes(day).values())
                execute(_CREATE.format(name=partition(day), day=day, indexes=indexes))
    return made


_DONE = "finished_at IS NOT NULL AND state <> 'failed'"
_OLDEST = f"""
SELECT finished_at FROM tailrace_jobs_live
WHERE {_DONE} AND finished_at >= %(since)s AND finished_at < %(until)s
ORDER BY finished_at LIMIT 1
"""
# Moves that a crash loses are repeated, so the commit does not wait for the disk.
_MOVE = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
done AS MATERIALIZED (
  SELECT id FROM quick, tailrace_jobs_live
  WHERE {_DONE} AND finished_at >= %(since)s AND finished_at < %(until)s
  ORDER BY finished_at LIMIT {BATCH} FOR UPDATE OF tailrace_jobs_live SKIP LOCKED
)
UPDATE tailrace_jobs_job j SET done_on = %(day)s
FROM done WHERE {probe("j.id", "done.id")} AND j.done_on IS NULL
"""


def in_batches(statement: str, deadline: float, **params: Any) -> int:
    """Repeat a statement that changes up to BATCH rows, until no rows are left or at `deadline`;
    return the number of rows."""
    total = 0
    while time.monotonic() < deadline:
        count = execute(statement, **params)
        total += count
        if count < BATCH:
            break
    return total


def move() -> int:
    """Move jobs that finished AGE_SECONDS ago to the history; return the number of jobs. Jobs past
    their retention are deleted soon."""
    deadline = time.monotonic() + SECONDS
    make_partitions()
    until = database_now() - timedelta(seconds=AGE_SECONDS)
    since = until - timedelta(days=conf.JOBS_RETENTION_DAYS)
    moved = 0
    while time.monotonic() < deadline and (oldest := query(_OLDEST, since=since, until=until)):
        day = oldest[0][0].astimezone(UTC).date()
        begins = datetime(day.year, day.month, day.day, tzinfo=UTC)
        ends = min(begins + timedelta(days=1), until)
        make_partitions(iter([day]))
        moved += in_batches(_MOVE, deadline, day=day, since=max(since, begins), until=ends)
        since = ends
    return moved


def drop_past(retention_days: int, deadline: float) -> int:
    """Drop the days past their retention, until `deadline` (`time.monotonic`); return the planner's
    estimate of the number of their jobs."""
    last_kept = database_now().date() - timedelta(days=retention_days)
    return sum(_drop(partition(day), deadline) for day in days() if day < last_kept)


# Few jobs have attempts or log lines: the rows of a day's jobs are found by their range of job ids.
_DELETE_OF_JOBS = """
WITH batch AS MATERIALIZED (
  SELECT ctid AS row, job_id FROM {table} WHERE job_id > %(beyond)s AND job_id <= %(last)s
  ORDER BY job_id LIMIT %(batch)s
), deleted AS (
  DELETE FROM {table} WHERE ctid IN (
    SELECT batch.row FROM batch WHERE (SELECT 1 FROM {day} d WHERE d.id = batch.job_id) IS NOT NULL)
)
SELECT count(*), max(job_id) FROM batch
"""


# A flow is deleted with all of its jobs, so what is left of one outlives its day. The date in the
# condition keeps the other days from being read.
_KEEP_FLOWS = f"""
UPDATE tailrace_jobs_job SET done_on = ({clock.NOW} AT TIME ZONE 'UTC')::date
WHERE done_on = '{{date}}' AND id = ANY(ARRAY(
  SELECT id FROM {{table}} WHERE flow_id IS NOT NULL LIMIT {BATCH} FOR UPDATE SKIP LOCKED))
"""


def _drop(name: str, deadline: float) -> int:
    in_batches(_KEEP_FLOWS.format(table=name, date=name.removeprefix(PREFIX)), deadline)
    [(left,)] = query(f"SELECT EXISTS (SELECT 1 FROM {name} WHERE flow_id IS NOT NULL)")
    if left:
        return 0
    [(first, last, rows)] = query(
        f"SELECT (SELECT min(id) FROM {name}), (SELECT max(id) FROM {name}),"
        " (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE relname = %(name)s)",
        name=name,
    )
    if first is not None:
        for table in TABLES_OF_JOBS:
            if not _delete_of_jobs(table, name, first, last, deadline):
                return 0
    return int(rows) if _drop_table(name, deadline) else 0


def _delete_of_jobs(table: str, day: str, first: int, last: int, deadline: float) -> bool:
    """Delete the table's rows of the day's jobs; return whether all were deleted in time."""
    statement = _DELETE_OF_JOBS.format(table=table, day=day)
    beyond = first - 1
    while time.monotonic() < deadline:
        [(count, newest)] = query(statement, beyond=beyond, last=last, batch=BATCH)
        if count < BATCH:
            return True
        beyond = newest
    return False


def _drop_table(name: str, deadline: float) -> bool:
    """Drop the table; return False if other sessions read the history all the time."""
    for _number in range(DROP_TRIES):
        try:
            with transaction.atomic(using=home()):
                execute(f"SET LOCAL lock_timeout = {DROP_LOCK_MILLISECONDS}")
                execute(f"DROP TABLE {name}")
            return True
        except DatabaseError as error:
            if not connections.timed_out(error):
                raise
        if time.monotonic() > deadline:
            break
        time.sleep(DROP_LOCK_MILLISECONDS / 1000)
    hint = "other sessions read the history all the time"
    log.warning("history.not_dropped", table=name, hint=hint)
    return False
