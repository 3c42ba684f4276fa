"""Resume queues whose pause has an end that has come."""

import structlog

from tailrace.db import clock
from tailrace.db.query import query

log = structlog.get_logger(__name__)

# A row that another transaction has locked is left to the next tick. Its jobs are woken by this
# tick, as those of any queue.
_RESUME = f"""
UPDATE tailrace_jobs_queue q
SET paused_at = NULL, paused_by = '', paused_reason = '', paused_until = NULL
FROM (SELECT name FROM tailrace_jobs_queue WHERE paused_until <= {clock.NOW}
      ORDER BY name FOR NO KEY UPDATE SKIP LOCKED) ended
WHERE q.name = ended.name RETURNING q.name
"""


def end_pauses() -> list[str]:
    """Resume these queues; return their names."""
    names = [name for (name,) in query(_RESUME)]
    if names:
        log.info("queues.pause_ended", queues=names)
    return names
