"""The partition of the history for jobs that end today, cached per process.

`tailrace.jobs.maintenance.history` creates the partitions. The cache expires after KEPT_SECONDS: a
migration may add columns while workers of older code run, and their values must not be lost when
these workers move jobs.
"""

import time
from dataclasses import dataclass
from datetime import date

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.jobs.engine.settling.settle_sql import finish_sql

PREFIX = "tailrace_jobs_done_"
KEPT_SECONDS = 30.0


def partition(day: date) -> str:
    """Return the name of the table for jobs that ended on this day (UTC)."""
    return f"{PREFIX}{day:%Y%m%d}"


@dataclass(frozen=True, slots=True)
class HistoryTable:
    """Today's partition, and the statement that moves jobs into it."""

    attributes: int
    """The number of columns of the live table, including dropped ones. Adding a column increases
    it."""
    finish: str
    """The statement that settles jobs and moves them."""


_TODAY = f"""
SELECT day, to_regclass('{PREFIX}' || to_char(day, 'YYYYMMDD')) IS NOT NULL,
  extract(epoch FROM (day + 1)::timestamp AT TIME ZONE 'UTC' - {clock.NOW})::float8, relnatts,
  (SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
   WHERE attrelid = live.oid AND attnum > 0 AND NOT attisdropped)
FROM (SELECT ({clock.NOW} AT TIME ZONE 'UTC')::date AS day) today, pg_class live
WHERE live.oid = 'tailrace_jobs_live'::regclass
"""

_known: tuple[float, float, HistoryTable | None] = (0.0, 0.0, None)
"""The cache: until when it is valid (monotonic), the clock offset for which it is valid, and the
table."""


def of_today() -> HistoryTable | None:
    """Return the partition of today, or None if it does not exist yet."""
    global _known
    until, offset, table = _known
    if time.monotonic() < until and offset == clock.offset:
        return table
    [(day, exists, seconds, attributes, columns)] = query(_TODAY)
    table = None
    if exists:
        table = HistoryTable(attributes, finish_sql(partition(day), day, columns))
    _known = (time.monotonic() + min(seconds, KEPT_SECONDS), clock.offset, table)
    return table


def forget() -> None:
    """Clear the cache."""
    global _known
    _known = (0.0, 0.0, None)
