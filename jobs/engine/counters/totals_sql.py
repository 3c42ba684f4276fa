"""The statements that write the counts and the statistics of drains (totals.py)."""

from tailrace.db import clock

# Rows are locked in the order of the keys, so that two processes cannot deadlock. Each commit is
# cheap, since the table is unlogged.
ADD = """
INSERT INTO tailrace_jobs_total AS t (metric, name, numbers)
SELECT metric, name, numbers::float8[]
FROM unnest(%(metrics)s::text[], %(names)s::text[], %(numbers)s::text[])
  AS new (metric, name, numbers)
ORDER BY metric, name
ON CONFLICT (metric, name) DO UPDATE SET numbers = ARRAY(
  SELECT coalesce(a, 0) + coalesce(b, 0)
  FROM unnest(t.numbers, excluded.numbers) WITH ORDINALITY AS both_of (a, b, place)
  ORDER BY place)
"""
"""Adds the counts of `params_to_write`."""

RECORD = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
totals AS ({ADD})
INSERT INTO tailrace_jobs_throughput AS t (queue, minute, completed, retried, failed, busy_ms)
SELECT %(queue)s, date_trunc('minute', {clock.NOW}), %(completed)s, %(retried)s, %(failed)s,
       %(busy_ms)s FROM quick
ON CONFLICT (minute, queue) DO UPDATE SET
  completed = t.completed + excluded.completed, retried = t.retried + excluded.retried,
  failed = t.failed + excluded.failed, busy_ms = t.busy_ms + excluded.busy_ms
"""
"""Adds the statistics of one drain, and the counts of `params_to_write`."""
