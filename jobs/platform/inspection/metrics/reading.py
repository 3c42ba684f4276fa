"""Read the figures of /metrics from the database, in one statement of bounded cost."""

from collections.abc import Mapping
from typing import Any

from tailrace.db import clock
from tailrace.db.limits import time_limits
from tailrace.db.query import query
from tailrace.jobs.platform.inspection.queues import stats
from tailrace.jobs.platform.inspection.storage.connections import MAX_HOLDERS, USED
from tailrace.jobs.platform.inspection.storage.past_retention import MOST_OVERDUE, retention
from tailrace.jobs.runtime.invariant import all_invariants

STATEMENT_SECONDS, LOCK_SECONDS = 3, 1
MAX_JOBS = 50_000
"""Jobs of a queue in one state are counted up to this number."""
MAX_ROWS = 10_000
"""The maximum number of breakers and of totals that are read."""

_BREAKERS = f"""
SELECT "group", state, count(*) AS count FROM (
  SELECT split_part(name, ':', 1) AS "group", CASE
    WHEN open_until IS NULL THEN CASE WHEN failures > 0 THEN 'degraded' ELSE 'closed' END
    WHEN open_until > {clock.NOW} THEN 'open' ELSE 'half-open' END AS state
  FROM tailrace_jobs_breaker LIMIT {MAX_ROWS}
) breaker GROUP BY 1, 2
"""
_SWEEPS = f"""
SELECT rule.name, last.outcome, last.found, last.repaired, last.duration_ms,
  extract(epoch FROM {clock.NOW} - last.started_at) AS age
FROM unnest(%(invariants)s::text[]) AS rule (name), LATERAL (
  SELECT * FROM tailrace_jobs_sweeprun WHERE invariant = rule.name ORDER BY id DESC LIMIT 1) last
"""
_READ = f"""
SELECT json_build_object(
  'queues', (SELECT json_agg(q) FROM (
    SELECT *, extract(epoch FROM {clock.NOW} - oldest_due) AS oldest FROM ({stats.QUEUES}) q) q),
  'totals', (SELECT json_agg(t) FROM (
    SELECT metric, name, numbers FROM tailrace_jobs_total ORDER BY metric, name
      LIMIT {MAX_ROWS}) t),
  'breakers', (SELECT json_agg(b) FROM ({_BREAKERS}) b),
  'sweeps', (SELECT json_agg(s) FROM ({_SWEEPS}) s),
  'turns', (SELECT json_object_agg(name, extract(epoch FROM {clock.NOW} - at))
            FROM tailrace_jobs_pulse
            WHERE name IN ('tick', 'sweep', 'prune')),
  'workers', (SELECT count(*) FROM tailrace_jobs_pulse WHERE name LIKE 'worker:%%'
              AND at > {clock.NOW} - make_interval(secs => {stats.WORKER_SECONDS})),
  'connections', (SELECT row_to_json(c) FROM ({USED}) c),
  'past_retention', (SELECT greatest(max(seconds), 0) FROM ({MOST_OVERDUE}) job)
)
"""


def read() -> Mapping[str, Any]:
    """Return the figures by name: lists of rows (columns by name), or numbers. Raises
    DatabaseError."""
    with time_limits(STATEMENT_SECONDS, LOCK_SECONDS):
        [(figures,)] = query(
            _READ,
            cap=MAX_JOBS,
            holders=MAX_HOLDERS,
            invariants=[rule.name for rule in all_invariants() if rule.every is not None],
            **retention(),
        )
    return {key: rows if rows is not None else [] for key, rows in figures.items()}
