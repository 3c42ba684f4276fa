"""SQL for the table tailrace_jobs_queueactivity: the state of a queue that each wake-up and each
drain changes.

An index scan for a row passes over all its dead versions. While another session holds a snapshot,
none of them can be removed. So the key has a second column, `slice`, that increases every few
seconds: a scan for the newest slice, from the end of the index, reads only the latest versions.
"""

from tailrace.db import clock

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
