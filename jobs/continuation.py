"""continuation: what waits for a job begins when that is done, and is cancelled when it is not."""

from collections.abc import Sequence

from django.db import connection

from events import clock
from jobs import wake

_RELEASE = f"""
UPDATE jobs_job c
SET state = CASE WHEN p.state IN ('completed', 'skipped') THEN 'pending' ELSE 'cancelled' END,
    due_at = greatest(c.due_at, {clock.NOW}),
    error = CASE WHEN p.state IN ('completed', 'skipped') THEN ''
                 ELSE 'waited for job ' || p.id || ', which was ' || p.state END,
    finished_at = CASE WHEN p.state IN ('completed', 'skipped') THEN NULL
                       ELSE {clock.NOW} END
FROM jobs_job p
WHERE p.id = ANY(%(parents)s) AND c.after_id = p.id AND c.state = 'waiting'
  AND p.state IN ('completed', 'skipped', 'cancelled', 'failed')
RETURNING c.id, c.handler, c.state
"""


def release(parents: Sequence[int]) -> int:
    """Move on what waits for these finished jobs, and what waits for those that that cancels.

    Returns the number of jobs moved, and wakes the queues of those that became pending.
    """
    moved, names = 0, set()
    while parents:
        with connection.cursor() as cursor:
            cursor.execute(_RELEASE, clock.params() | {"parents": list(parents)})
            rows = cursor.fetchall()
        moved += len(rows)
        names |= {handler for _id, handler, state in rows if state == "pending"}
        parents = [id for id, _handler, state in rows if state == "cancelled"]
    wake.on_commit(names)
    return moved
