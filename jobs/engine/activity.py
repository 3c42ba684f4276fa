"""SQL of what changes with each wake-up and each drain of a queue: the rows of
tailrace_jobs_queueactivity.

A row is found by its key, past all its versions that cannot be removed yet; while another session
holds a snapshot, those are all since it began. So the key has a part that moves on every few
seconds, and who looks for the newest one, from the end of the index, walks over its versions alone.
"""

from tailrace.db import clock

SLICE_SECONDS = 5


def newest(name: str) -> str:
    """Return SQL of a table with the row of the queue of this name; none if it has none yet."""
    return f"""(SELECT n.* FROM tailrace_jobs_queueactivity n WHERE n.name BETWEEN {name} AND {name}
      ORDER BY n.name DESC, n.slice DESC LIMIT 1)"""


def same(row: str, seen: str) -> str:
    """Return a condition: `row` of the table is the one that was seen as `seen`, which may have
    moved on since."""
    return f"{row}.name BETWEEN {seen}.name AND {seen}.name AND {row}.slice >= {seen}.slice"


SLICE = f"greatest(a.slice, floor(extract(epoch FROM {clock.NOW}) / {SLICE_SECONDS})::bigint)"
"""The slice of a row `a` that is written now. A clock that goes back does not move it back."""
CREATE = f"""
INSERT INTO tailrace_jobs_queueactivity (name, slice, awake, resends, tokens, tokens_at)
SELECT q.name, 0, false, 0, 0, {clock.NOW} FROM tailrace_jobs_queue q
WHERE q.name = ANY(%(names)s) AND NOT EXISTS (SELECT 1 FROM {newest("q.name")} a)
ON CONFLICT DO NOTHING
"""
"""Creates the missing rows of these queues."""
