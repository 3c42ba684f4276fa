"""The partition of the history that takes what ends today, as this process knows it.

`tailrace.jobs.maintenance.history` makes the partitions. Which one is today's, and the columns of a
job, are asked of the database again after KEPT_SECONDS: columns may be added while workers of older
code go on, and must not be lost by what these move.
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
    """Return the name of the table of what ended on a day (UTC)."""
    return f"{PREFIX}{day:%Y%m%d}"


@dataclass(frozen=True, slots=True)
class HistoryTable:
    """Today's partition, and the statement that moves jobs there."""

    attributes: int
    """Of a live job, with those that were dropped: a column that is added raises this number."""
    finish: str


_TODAY = f"""
SELECT day, to_regclass('{PREFIX}' || to_char(day, 'YYYYMMDD')) IS NOT NULL,
  extract(epoch FROM (day + 1)::timestamp AT TIME ZONE 'UTC' - {clock.NOW})::float8, relnatts,
  (SELECT array_agg(attname::text ORDER BY attnum) FROM pg_attribute
   WHERE attrelid = live.oid AND attnum > 0 AND NOT attisdropped)
FROM (SELECT ({clock.NOW} AT TIME ZONE 'UTC')::date AS day) today, pg_class live
WHERE live.oid = 'tailrace_jobs_live'::regclass
"""

_known: tuple[float, float, HistoryTable | None] = (0.0, 0.0, None)
"""Until when it holds (monotonic), with which offset of the clock, and what it is."""


def of_today() -> HistoryTable | None:
    """Return the partition of today; None where it was not made yet."""
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
    """Have the next call ask the database."""
    global _known
    _known = (0.0, 0.0, None)
