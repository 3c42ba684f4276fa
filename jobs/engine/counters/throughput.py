"""Count the settled jobs per queue and minute, for the overview. A crash may lose some counts."""

from collections import Counter

from tailrace.db import clock
from tailrace.db.query import execute
from tailrace.jobs.engine.counters import totals

_RECORD = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
totals AS ({totals.ADD})
INSERT INTO tailrace_jobs_throughput AS t (queue, minute, completed, retried, failed, busy_ms)
SELECT %(queue)s, date_trunc('minute', {clock.NOW}), %(completed)s, %(retried)s, %(failed)s,
       %(busy_ms)s FROM quick
ON CONFLICT (minute, queue) DO UPDATE SET
  completed = t.completed + excluded.completed, retried = t.retried + excluded.retried,
  failed = t.failed + excluded.failed, busy_ms = t.busy_ms + excluded.busy_ms
"""


def record(queue: str, tally: Counter[str], seconds: float) -> None:
    """Add the number of jobs that one drain settled, by state, and the duration of the drain. Once
    a second, also write the counts of this process for /metrics."""
    with totals.params_for_drain() as params:
        execute(
            _RECORD,
            queue=queue,
            completed=tally["completed"] + tally["skipped"],
            retried=tally["pending"],
            failed=tally["failed"],
            busy_ms=int(seconds * 1000),
            **params,
        )
