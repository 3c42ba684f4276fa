"""Keep the history apart from what is live, so that no claim, rescue or vacuum meets it.

`tailrace_jobs_job` has a partition for what is live (`tailrace_jobs_live`), in which jobs are made,
run and end, and one per day for those that ended on it (UTC), but for failed ones: those wait for
an operator. The settlement of a claim moves there what is over with all of it (`engine.settling`);
what ended otherwise, or while its day had no partition, is moved some minutes later. A day past its
retention is dropped, and no row deleted.
"""

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import structlog
from django.conf import settings
from django.db import DatabaseError, transaction

from tailrace.db import connections
from tailrace.db.plans import probe
from tailrace.db.query import database_now, execute, query
from tailrace.jobs.engine.settling.history_table import PREFIX, partition

log = structlog.get_logger(__name__)

DAYS_AHEAD = 7
"""Partitions are made for today and as many days to come."""
BATCH = 2000
SECONDS = 5.0
"""A turn ends after this; the next one continues."""
AGE_SECONDS = 180
"""A job is moved this long after its end: what works with it then has read it as finished, and
wants no lock of its row."""
DROP_LOCK_MILLISECONDS = 300
"""For how long a drop may wait for those who read the history: others wait behind it."""
DROP_TRIES = 20


_PARTITIONS = """
SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = 'tailrace_jobs_job'::regclass AND starts_with(relname, %(prefix)s)
ORDER BY relname
"""


LAST_DAY = f"""
SELECT to_date(max(right(relname, 8)), 'YYYYMMDD') FROM pg_inherits
JOIN pg_class ON pg_class.oid = inhrelid
WHERE inhparent = 'tailrace_jobs_job'::regclass AND starts_with(relname, '{PREFIX}')
"""
"""SQL of the last day that has a partition, a week ahead if upkeep works; NULL before the first."""


def days() -> list[date]:
    """Return the days that have a partition, oldest first."""
    names = [name for (name,) in query(_PARTITIONS, prefix=PREFIX)]
    return [datetime.strptime(name.removeprefix(PREFIX), "%Y%m%d").date() for name in names]


# The constraints let the planner leave the day out of whatever asks for other states, and spare a
# scan when it is attached. Attaching stops neither readers nor writers.
_CREATE = """
CREATE TABLE {name} (LIKE tailrace_jobs_job INCLUDING DEFAULTS INCLUDING CONSTRAINTS,
  CHECK (done_on IS NOT NULL AND done_on = '{day}'),
  CHECK (finished_at IS NOT NULL AND state IN ('completed', 'skipped', 'cancelled')));
{indexes};
ALTER TABLE tailrace_jobs_job ATTACH PARTITION {name} FOR VALUES IN ('{day}')
"""
# Those whose condition asks for a state are of no use where all jobs are done.
_INDEXES = """
SELECT c.relname, pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = 'tailrace_jobs_live'::regclass AND i.indisvalid
  AND coalesce(pg_get_expr(i.indpred, i.indrelid), '') !~ '\\mstate\\M'
ORDER BY c.relname
"""


def _indexes(day: date) -> dict[str, str]:
    """Return the statements that make the indexes of a day, by their names: as the live partition
    has them, also those that other apps have added."""
    statements = {}
    for index, definition in query(_INDEXES):
        begins, rest = definition.split(" USING ", 1)
        unique = "UNIQUE " if "UNIQUE" in begins else ""
        name = f"{index}_{day:%Y%m%d}"
        statements[name] = f'CREATE {unique}INDEX "{name}" ON {partition(day)} USING {rest}'
    return statements | {
        f"tailrace_job_ended_{day:%Y%m%d}": _INDEX_OF_ENDS.format(day=day, name=partition(day))
    }


# Jobs come to a day in the order of their ends, so one entry for 16 pages finds those of a minute.
_INDEX_OF_ENDS = """
CREATE INDEX "tailrace_job_ended_{day:%Y%m%d}" ON {name} USING brin (finished_at)
  WITH (pages_per_range = 16, autosummarize = on)"""


def make_partitions(wanted: Iterator[date] | None = None) -> list[date]:
    """Make the partitions that lack, by default those of today and of the next days; return the
    days. Two processes at once: one of them makes each."""
    today = database_now().date()
    wanted = wanted or (today + timedelta(days=number) for number in range(DAYS_AHEAD + 1))
    known = set(days())
    made = [day for day in wanted if day not in known]
    for day in made:
        with transaction.atomic():
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
# What a crash forgets is moved again, so the commit need not wait for the disk.
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


def move() -> int:
    """Move what ended long enough ago to the partitions of its days; return the number of jobs.

    Jobs past their retention stay: they are about to be deleted.
    """
    deadline = time.monotonic() + SECONDS
    make_partitions()
    until = database_now() - timedelta(seconds=AGE_SECONDS)
    since = until - timedelta(days=settings.JOBS_RETENTION_DAYS)
    moved = 0
    while time.monotonic() < deadline and (oldest := query(_OLDEST, since=since, until=until)):
        day = oldest[0][0].astimezone(UTC).date()
        begins = datetime(day.year, day.month, day.day, tzinfo=UTC)
        ends = min(begins + timedelta(days=1), until)
        make_partitions(iter([day]))
        moved += _move_day(day, max(since, begins), ends, deadline)
        since = ends
    return moved


def _move_day(day: date, since: datetime, until: datetime, deadline: float) -> int:
    total = 0
    while time.monotonic() < deadline:
        count = execute(_MOVE, day=day, since=since, until=until)
        total += count
        if count < BATCH:
            break
    return total


def past(retention_days: int) -> list[date]:
    """Return the days with a partition whose last job is past its retention, oldest first."""
    last_kept = database_now().date() - timedelta(days=retention_days)
    return [day for day in days() if day < last_kept]


def drop_past(retention_days: int, deadline: float) -> int:
    """Drop the days past their retention; return the number of their jobs, as the planner
    estimates it. What is not done by `deadline` (`time.monotonic`) is left to the next turn."""
    return sum(_drop(partition(day), deadline) for day in past(retention_days))


# Few jobs have attempts or lines: those of a day are found along the range of its ids.
_DELETE_OF_JOBS = """
WITH batch AS MATERIALIZED (
  SELECT id, job_id FROM {table} WHERE job_id > %(beyond)s AND job_id <= %(last)s
  ORDER BY job_id LIMIT %(batch)s
), deleted AS (
  DELETE FROM {table} WHERE id IN (
    SELECT batch.id FROM batch WHERE (SELECT 1 FROM {day} d WHERE d.id = batch.job_id) IS NOT NULL)
)
SELECT count(*), max(job_id) FROM batch
"""


def _drop(name: str, deadline: float) -> int:
    [(first, last, rows)] = query(
        f"SELECT (SELECT min(id) FROM {name}), (SELECT max(id) FROM {name}),"
        " (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE relname = %(name)s)",
        name=name,
    )
    if first is not None:
        for table in ("tailrace_jobs_attempt", "tailrace_jobs_loglines"):
            if not _delete_of_jobs(table, name, first, last, deadline):
                return 0
    return int(rows) if _drop_table(name, deadline) else 0


def _delete_of_jobs(table: str, day: str, first: int, last: int, deadline: float) -> bool:
    """Delete the rows of the day's jobs; return whether there was time for all."""
    statement = _DELETE_OF_JOBS.format(table=table, day=day)
    beyond = first - 1
    while time.monotonic() < deadline:
        [(count, newest)] = query(statement, beyond=beyond, last=last, batch=BATCH)
        if count < BATCH:
            return True
        beyond = newest
    return False


def _drop_table(name: str, deadline: float) -> bool:
    """Drop the table, unless somebody reads the history for longer than others may wait."""
    for _number in range(DROP_TRIES):
        try:
            with transaction.atomic():
                execute(f"SET LOCAL lock_timeout = {DROP_LOCK_MILLISECONDS}")
                execute(f"DROP TABLE {name}")
            return True
        except DatabaseError as error:
            if not connections.timed_out(error):
                raise
        if time.monotonic() > deadline:
            break
        time.sleep(DROP_LOCK_MILLISECONDS / 1000)
    log.warning("history.not_dropped", table=name, hint="somebody reads the history all the time")
    return False
