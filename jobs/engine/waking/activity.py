"""SQL for the table tailrace_jobs_queueactivity: the state of a queue that each wake-up and each
drain changes.

An index scan for a row passes over all its dead versions. While another session holds a snapshot,
none of them can be removed. So the key has a second column, `slice`, that increases every few
seconds: a scan for the newest slice, from the end of the index, reads only the latest versions.
"""

from tailrace.db import clock
from tailrace.db.sql.plans import probe

SLICE_SECONDS = 5


def newest(name: str) -> str:
    """Return SQL for a table with the row of the queue, if there is one. `name` is SQL, too."""
    return f"""(SELECT n.* FROM tailrace_jobs_queueactivity n WHERE n.name BETWEEN {name} AND {name}
      ORDER BY n.name DESC, n.slice DESC LIMIT 1)"""


def same(row: str, seen: str) -> str:
    """Return SQL: whether `row` is the one read as `seen`, whose slice may have increased since."""
    return f"{row}.name BETWEEN {seen}.name AND {seen}.name AND {row}.slice >= {seen}.slice"


SLICE = f"greatest(a.slice, floor(extract(epoch FROM {clock.NOW}) / {SLICE_SECONDS})::bigint)"
"""The slice for a write to the row `a` now. It does not decrease if the clock is set back."""
CREATE = f"""
INSERT INTO tailrace_jobs_queueactivity (name, slice, awake, resends, tokens, tokens_at)
SELECT q.name, 0, false, 0, 0, {clock.NOW} FROM tailrace_jobs_queue q
WHERE q.name = ANY(%(names)s) AND NOT EXISTS (SELECT 1 FROM {newest("q.name")} a)
ON CONFLICT DO NOTHING
"""
"""Creates the rows of these queues that are missing."""

# Locked rows are passed over, so that a lock delays only the wake-up of its own queue, and locks
# may be taken in any order. A crash of the database may lose the flag, so the commit need not wait
# for the disk. The last SELECT reads the rows before the update. A queue without a row counts as a
# queue whose row is locked.
MARK = f"""
WITH asleep AS MATERIALIZED (
  SELECT q.name, a.slice FROM tailrace_jobs_queue q LEFT JOIN LATERAL {newest("q.name")} a ON true
  WHERE q.name = ANY(%(names)s) AND q.paused_at IS NULL AND a.awake IS NOT TRUE
),
free AS MATERIALIZED (
  SELECT a.name FROM asleep JOIN tailrace_jobs_queueactivity a ON {same("a", "asleep")}
  WHERE NOT a.awake FOR NO KEY UPDATE OF a SKIP LOCKED
),
marked AS (
  UPDATE tailrace_jobs_queueactivity a
  SET awake = true, awake_at = {clock.NOW}, resends = 0, slice = {SLICE}
  FROM asleep
  WHERE {same("a", "asleep")} AND a.name = ANY(ARRAY(SELECT name FROM free))
    AND set_config('synchronous_commit', 'off', true) IS NOT NULL
  RETURNING a.name
)
SELECT name, name = ANY(ARRAY(SELECT name FROM marked)) FROM asleep
"""
"""Marks queues that are asleep as awake; returns their names, and whether each was marked."""

# If another transaction has locked the row, the flag does not change and only the limits are read.
# No job is missed: a waker that holds the lock sends a message afterwards; another drain that holds
# it clears the flag and claims afterwards. If any other transaction holds it, the flag may stay set
# although no message was sent; then the tick sends one. A crash of the database may lose the flag,
# so the commit need not wait for the disk.
_LIMITS = "q.paused_at IS NOT NULL, q.max_running, q.rate_limit"
BEGIN = f"""
WITH free AS MATERIALIZED (
  SELECT seen.name, seen.slice
  FROM {newest("%(handler)s")} seen JOIN tailrace_jobs_queueactivity a ON {same("a", "seen")}
  FOR NO KEY UPDATE OF a SKIP LOCKED
)
UPDATE tailrace_jobs_queueactivity a
SET awake = false, drained_at = {clock.NOW}, resends = 0, slice = {SLICE}
FROM free JOIN tailrace_jobs_queue q ON {probe("q.name", "free.name")}
WHERE {same("a", "free")} AND set_config('synchronous_commit', 'off', true) IS NOT NULL
RETURNING {_LIMITS}
"""
READ_LIMITS = f"SELECT {_LIMITS} FROM tailrace_jobs_queue q WHERE q.name = %(handler)s"

SOON_AGAIN = f"""
UPDATE tailrace_jobs_queueactivity a SET resends = 0
FROM {newest("%(name)s")} seen WHERE {same("a", "seen")}
"""
"""Lets the tick send the next message for a queue after the shortest time."""

# Awake means that a message was sent and no drain has begun. If it was sent long ago, the queue has
# no workers.
OTHERS_WAIT = f"""
SELECT EXISTS (
  SELECT 1 FROM tailrace_jobs_queue q, LATERAL {newest("q.name")} a
  WHERE a.awake AND q.name <> %(name)s AND q.paused_at IS NULL
    AND a.awake_at BETWEEN {clock.NOW} - interval '10 seconds' AND {clock.NOW})
"""

AWAKE = f"""
SELECT q.name FROM tailrace_jobs_queue q, LATERAL {newest("q.name")} a
WHERE a.awake AND q.name <> %(name)s AND q.paused_at IS NULL AND q.retired_at IS NULL
ORDER BY a.awake_at, q.name
"""
"""The names of the other queues that are awake, the one that was woken first at the beginning."""
