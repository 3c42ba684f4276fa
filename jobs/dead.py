"""dead: a pending job whose handler no longer exists goes to `failed`, with that reason."""

import structlog
from django.db import connection

from events import clock
from jobs import continuation, registry

log = structlog.get_logger(__name__)

# A queue's row stands for a handler of the code that migrated last: old workers beside a deploy
# do not know a new handler, but they see its row. The names are walked one index probe each.
_ORPHANED = """
WITH RECURSIVE names (handler) AS (
  (SELECT handler FROM jobs_job WHERE state = 'pending' ORDER BY handler LIMIT 1)
  UNION ALL
  SELECT (SELECT j.handler FROM jobs_job j WHERE j.state = 'pending'
            AND j.handler > names.handler ORDER BY j.handler LIMIT 1)
  FROM names WHERE names.handler IS NOT NULL
)
SELECT job.id FROM names, LATERAL (
  SELECT id FROM jobs_job WHERE handler = names.handler AND state = 'pending'
  ORDER BY priority, due_at, id LIMIT %(limit)s
) job
WHERE names.handler IS NOT NULL
  AND NOT EXISTS (
    SELECT 1 FROM jobs_queue q WHERE q.name = names.handler AND q.retired_at IS NULL)
  AND names.handler <> ALL(%(known)s)
LIMIT %(limit)s
"""

_BURY = f"""
UPDATE jobs_job SET state = 'failed', finished_at = {clock.NOW},
  error = 'no handler is called ' || handler
    || '; it was removed or renamed: deploy one of that name and replay the job'
WHERE id = ANY(%(ids)s) AND state = 'pending' RETURNING id
"""


def orphaned(limit: int = 1000) -> list[int]:
    """Return the ids of pending jobs that no handler will ever take."""
    with connection.cursor() as cursor:
        cursor.execute(_ORPHANED, {"limit": limit, "known": list(registry.everything())})
        return [row[0] for row in cursor.fetchall()]


def bury(ids: list[int]) -> int:
    """Move these pending jobs to `failed`; return how many were."""
    with connection.cursor() as cursor:
        cursor.execute(_BURY, clock.params() | {"ids": ids})
        buried = [row[0] for row in cursor.fetchall()]
    continuation.release(buried)
    if buried:
        log.error("job.failed", jobs=buried[:100], count=len(buried), error="no such handler")
    return len(buried)
