"""Count the failures of each group."""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import structlog
from django.db import DatabaseError, InterfaceError

from tailrace.db import clock, connections, locks
from tailrace.db.query import query
from tailrace.db.sql.arrays import arrays
from tailrace.jobs.engine.failures.fingerprint import Fingerprint

log = structlog.get_logger(__name__)

LOCK_SECONDS = 0.2
"""How long a count waits for the row of its group; a count that waits longer is lost."""

# Rows are written in the order of their ids, so that two settlements cannot deadlock.
_RECORD = f"""
WITH {locks.LIMITED},
quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) FROM limited),
failed AS MATERIALIZED (
  SELECT v.*, coalesce(v.first_at, {clock.NOW}) AS first_seen_at,
         coalesce(v.last_at, {clock.NOW}) AS last_seen_at
  FROM quick, unnest(%(id)s::bigint[], %(handler)s::text[], %(error_class)s::text[],
    %(frame)s::text[], %(message)s::text[], %(failures)s::bigint[], %(first_at)s::timestamptz[],
    %(last_at)s::timestamptz[])
    AS v (id, handler, error_class, frame, message, failures, first_at, last_at)
),
grouped AS (
  INSERT INTO tailrace_jobs_failuregroup AS g
    (id, handler, error_class, frame, message, failures, first_seen_at, last_seen_at, note)
  SELECT id, handler, error_class, frame, message, failures, first_seen_at, last_seen_at, ''
  FROM failed ORDER BY id
  ON CONFLICT (id) DO UPDATE SET
    failures = g.failures + excluded.failures,
    first_seen_at = least(g.first_seen_at, excluded.first_seen_at),
    last_seen_at = greatest(g.last_seen_at, excluded.last_seen_at)
  RETURNING g.id, g.silenced_until
),
counted AS (
  INSERT INTO tailrace_jobs_failurehour AS h (group_id, hour, failures)
  SELECT id, date_trunc('hour', last_seen_at, 'UTC'), failures
  FROM grouped JOIN failed USING (id) ORDER BY id
  ON CONFLICT (group_id, hour) DO UPDATE SET failures = h.failures + excluded.failures
  RETURNING 1
), {locks.restored("counted")}
SELECT grouped.id FROM restored, grouped WHERE silenced_until > {clock.NOW}
"""


def count(failures: Mapping[Fingerprint, int], times: Mapping[Fingerprint, Any] = {}) -> set[int]:
    """Add numbers of failures to their groups; return the ids of the silenced groups. `times` has
    the first and the last time of each; the default is now."""
    groups = sorted(failures, key=lambda group: group.id)
    rows = query(
        _RECORD,
        **arrays(groups, ("id", "handler", "error_class", "frame", "message"), ("id",)),
        failures=[failures[group] for group in groups],
        first_at=[times.get(group, (None, None))[0] for group in groups],
        last_at=[times.get(group, (None, None))[1] for group in groups],
        wait_seconds=LOCK_SECONDS,
    )
    return {id for (id,) in rows}


_SILENCED = f"""
SELECT id FROM tailrace_jobs_failuregroup WHERE id = ANY(%(ids)s) AND silenced_until > {clock.NOW}
"""


def silenced(failures: Iterable[Fingerprint]) -> set[int]:
    """Return the ids of the groups that an operator has silenced."""
    ids = sorted({failure.id for failure in failures})
    return {id for (id,) in query(_SILENCED, ids=ids)} if ids else set()


def count_settled(failures: Iterable[Fingerprint]) -> set[int]:
    """Count the failures of a settlement; return the ids of the silenced groups. A database error
    is logged and the counts are lost, so that no settlement fails."""
    tally = Counter(failures)
    connection = connections.current()
    try:
        with connections.atomic() if connection.in_atomic_block else nullcontext():
            return count(tally)
    except (DatabaseError, InterfaceError) as error:
        log.warning("failures.not_counted", failures=tally.total(), error=str(error).strip())
        if not connections.timed_out(error) and not connection.in_atomic_block:
            connection.close()
        return set()
