"""throughput: what was settled per queue and minute, for the overview; lost in a crash at worst."""

from collections import Counter

from django.db import connection

from events import clock

_RECORD = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO jobs_throughput AS t (queue, minute, completed, retried, failed, busy_ms)
SELECT %(queue)s, date_trunc('minute', {clock.NOW}), %(completed)s, %(retried)s, %(failed)s,
       %(busy_ms)s FROM quick
ON CONFLICT (minute, queue) DO UPDATE SET
  completed = t.completed + excluded.completed, retried = t.retried + excluded.retried,
  failed = t.failed + excluded.failed, busy_ms = t.busy_ms + excluded.busy_ms
"""


def record(queue: str, tally: Counter[str], seconds: float) -> None:
    """Add what one drain settled, by the states it settled to, and the time it took."""
    params = {
        "queue": queue,
        "completed": tally["completed"] + tally["skipped"],
        "retried": tally["pending"],
        "failed": tally["failed"],
        "busy_ms": int(seconds * 1000),
    }
    with connection.cursor() as cursor:
        cursor.execute(_RECORD, clock.params() | params)
