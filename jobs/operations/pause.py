"""Pause and resume a queue."""

from datetime import datetime

import structlog

from tailrace.db import clock, row_wait
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.models import Queue, QueueActivity

log = structlog.get_logger(__name__)

MAX_REASON = 200
"""Maximum length of a reason."""


def pause(name: str, by: str, reason: str = "", until: datetime | None = None) -> bool:
    """Stop new claims; running jobs continue. At the time `until`, the tick resumes the queue.
    Return False if the queue is already paused. Raises Blocked if another transaction holds the
    queue's row for long."""
    with row_wait.bounded(Queue, name=name):
        changed = Queue.objects.filter(name=name, paused_at=None).update(
            paused_at=clock.now(), paused_by=by, paused_reason=reason, paused_until=until
        )
    log.info("queues.paused", queue=name, by=by, changed=bool(changed))
    return bool(changed)


def resume(name: str, by: str) -> bool:
    """Allow claims again and wake the queue. Return False if it is not paused. Raises Blocked as
    `pause`."""
    with row_wait.bounded(Queue, name=name):
        changed = Queue.objects.filter(name=name, paused_at__isnull=False).update(
            paused_at=None, paused_by="", paused_reason="", paused_until=None
        )
        if changed:
            with row_wait.bounded(QueueActivity, name=name):
                QueueActivity.objects.filter(name=name).update(awake=False)
            wake.on_commit({name})
    log.info("queues.resumed", queue=name, by=by, changed=bool(changed))
    return bool(changed)
