"""Turns: choose the process that does a piece of upkeep, each time again.

There is no leader. Each process tries to take the next turn, and the row of the turn lets one
process have it per interval. If a process is stopped or killed, another one takes the next turn.
"""

from tailrace.db import clock
from tailrace.db.query import execute, query

OVERDUE = 3
"""If no process has taken a turn for this many intervals, its row is locked, and the work is done
without taking the turn. All upkeep may be done by several processes at once."""

# A turn in the future means that the database's clock was set back. Turns that a crash of the
# database loses are taken again, so the commit does not wait for the disk.
_TAKE = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
due AS (
  SELECT p.name FROM tailrace_jobs_pulse p, quick
  WHERE p.name = %(name)s
    AND p.at NOT BETWEEN {clock.NOW} - make_interval(secs => %(interval)s)
                     AND {clock.NOW} + interval '1 second'
  FOR NO KEY UPDATE OF p SKIP LOCKED
),
taken AS (
  UPDATE tailrace_jobs_pulse p SET at = {clock.NOW}, by = %(by)s
  FROM due WHERE p.name = due.name RETURNING p.name
)
SELECT EXISTS (SELECT 1 FROM taken), extract(epoch FROM {clock.NOW} - at)::float8
FROM tailrace_jobs_pulse WHERE name = %(name)s
"""

_CREATE = f"""
INSERT INTO tailrace_jobs_pulse (name, at, queues, by) VALUES (%(name)s, {clock.NOW}, '[]', '')
ON CONFLICT (name) DO NOTHING
"""


def take(name: str, interval: float, by: str) -> tuple[bool, float]:
    """Try to take the turn called `name`, which comes once per `interval` seconds. Return whether
    this process should do the work, and the seconds until the next turn. It waits for no lock."""
    rows = query(_TAKE, name=name, interval=interval, by=by)
    if not rows:
        execute(_CREATE, name=name)
        return False, interval
    [(is_taken, age)] = rows
    if is_taken:
        return True, interval
    return age > OVERDUE * interval, min(max(interval - age, 0.0), interval)
