"""Find finished jobs that are older than their retention."""

from datetime import datetime

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.environment.conf import conf

# One probe of each index, and one of the names of the history's partitions: a day is past its
# retention when its last second is.
MOST_OVERDUE = f"""
SELECT ended, extract(epoch FROM {clock.NOW} - ended)::float8 - 86400 * days AS seconds
FROM (
  (SELECT finished_at AS ended, %(failed_days)s AS days FROM tailrace_jobs_live
   WHERE state = 'failed' AND finished_at IS NOT NULL ORDER BY finished_at LIMIT 1)
  UNION ALL
  (SELECT finished_at, %(days)s FROM tailrace_jobs_live
   WHERE state <> 'failed' AND finished_at IS NOT NULL ORDER BY finished_at LIMIT 1)
  UNION ALL
  (SELECT (to_date(right(relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC', %(days)s
   FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
   WHERE inhparent = 'tailrace_jobs_job'::regclass AND relname ~ '^tailrace_jobs_done_[0-9]+$'
   ORDER BY relname LIMIT 1)
) job ORDER BY seconds DESC LIMIT 1
"""
"""SQL: the most overdue job: when it ended, and the seconds since its retention ended (negative if
it is not overdue). The parameters are `retention()`."""


def retention() -> dict[str, int]:
    days, failed_days = conf.JOBS_RETENTION_DAYS, conf.JOBS_FAILED_RETENTION_DAYS
    return {"days": days, "failed_days": failed_days}


def most_overdue() -> tuple[datetime, float] | None:
    """Return when the most overdue job ended, and the seconds since its retention ended, if any."""
    rows = query(MOST_OVERDUE, **retention())
    return (rows[0][0], rows[0][1]) if rows and rows[0][1] > 0 else None
