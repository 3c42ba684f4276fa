"""Begin to work on a queue: clear its flag `awake` and read its limits."""

import structlog

from tailrace.db.query import execute, prepared
from tailrace.jobs.engine.claiming.claim import Limits
from tailrace.jobs.engine.waking.activity import BEGIN, CREATE, READ_LIMITS
from tailrace.jobs.handler import Handler

log = structlog.get_logger(__name__)


def begin(handler: Handler) -> Limits | None:
    """Clear the flag `awake` before the first claim, and return the queue's limits; None if the
    queue is paused. The claim sees jobs that were committed before this statement. For jobs that
    are committed after it, a new message is sent."""
    name = handler.name
    rows = prepared(BEGIN, handler=name)
    if not rows:
        execute(CREATE, names=[name])
        rows = prepared(READ_LIMITS, handler=name)
    if not rows:
        log.error("drain.no_queue", queue=handler.name, hint="run `manage.py migrate`")
        return None
    paused, max_running, rate_limit = rows[0]
    if paused:
        return None
    return Limits(max_running or handler.max_running, rate_limit or handler.rate_limit)
