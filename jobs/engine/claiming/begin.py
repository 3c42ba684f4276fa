"""Begin to work on a queue: clear its flag `awake` and read its limits."""

import structlog

from tailrace.db import clock
from tailrace.db.query import execute, prepared
from tailrace.db.sql.plans import probe
from tailrace.jobs.engine.claiming.claim import Limits
from tailrace.jobs.engine.waking.activity import CREATE, SLICE, newest, same
from tailrace.jobs.handler import Handler

log = structlog.get_logger(__name__)

# If another transaction has locked the row, the flag does not change and only the limits are read.
# No job is missed: a waker that holds the lock sends a message afterwards; another drain that holds
# it clears the flag and claims afterwards. If any other transaction holds it, the flag may stay set
# although no message was sent; then the tick sends one. A crash of the database may lose the flag,
# so the commit need not wait for the disk.
_LIMITS = "q.paused_at IS NOT NULL, q.max_running, q.rate_limit"
_BEGIN = f"""
WITH free AS MATERIALIZED (
  SELECT seen.name, seen.slice
  FROM {newest("%(name)s")} seen JOIN tailrace_jobs_queueactivity a ON {same("a", "seen")}
  FOR NO KEY UPDATE OF a SKIP LOCKED
)
UPDATE tailrace_jobs_queueactivity a
SET awake = false, drained_at = {clock.NOW}, resends = 0, slice = {SLICE}
FROM free JOIN tailrace_jobs_queue q ON {probe("q.name", "free.name")}
WHERE {same("a", "free")} AND set_config('synchronous_commit', 'off', true) IS NOT NULL
RETURNING {_LIMITS}
"""
_READ_LIMITS = f"SELECT {_LIMITS} FROM tailrace_jobs_queue q WHERE q.name = %(name)s"


def begin(handler: Handler) -> Limits | None:
    """Clear the flag `awake` before the first claim, and return the queue's limits; None if the
    queue is paused. The claim sees jobs that were committed before this statement. For jobs that
    are committed after it, a new message is sent."""
    name = handler.name
    rows = prepared(_BEGIN, name=name)
    if not rows:
        execute(CREATE, names=[name])
        rows = prepared(_READ_LIMITS, name=name)
    if not rows:
        log.error("drain.no_queue", queue=handler.name, hint="run `manage.py migrate`")
        return None
    paused, max_running, rate_limit = rows[0]
    if paused:
        return None
    return Limits(max_running or handler.max_running, rate_limit)
