"""Begin to work on a queue: clear its flag `awake` and read its limits."""

import structlog

from db import clock, prepared
from jobs.engine.claim import Limits
from jobs.handler import Handler

log = structlog.get_logger(__name__)

# While another transaction has the row locked, nothing is written: the limits are read and the flag
# stays as it is. Nothing is missed: a waker that holds the lock sends a message afterwards; another
# drain that holds it clears the flag and claims afterwards. If anyone else holds it, the flag may
# stay set without a message on its way, and the tick sends one. The flag may be lost in a crash of
# the database, so its commit need not wait for the disk.
_LIMITS = "paused_at IS NOT NULL, max_running, rate_limit"
_BEGIN = f"""
UPDATE jobs_queue SET awake = false, drained_at = {clock.NOW}, resends = 0
WHERE name = (
    SELECT name FROM jobs_queue WHERE name = %(name)s FOR NO KEY UPDATE SKIP LOCKED)
  AND set_config('synchronous_commit', 'off', true) IS NOT NULL
RETURNING {_LIMITS}
"""
_READ_LIMITS = f"SELECT {_LIMITS} FROM jobs_queue WHERE name = %(name)s"


def begin(handler: Handler) -> Limits | None:
    """Clear the flag `awake` before the first claim, and return the queue's limits; None if it is
    paused.

    What is committed after this statement sends a message of its own, what was committed before it
    is seen by the claim.
    """
    name = handler.name
    rows = prepared.query(_BEGIN, name=name) or prepared.query(_READ_LIMITS, name=name)
    if not rows:
        log.error("drain.no_queue", queue=handler.name, hint="run `manage.py migrate`")
        return None
    paused, max_running, rate_limit = rows[0]
    if paused:
        return None
    return Limits(max_running or handler.max_running, rate_limit)
