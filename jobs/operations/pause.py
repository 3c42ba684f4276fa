"""Pause and resume a queue."""

import structlog

from tailrace.db import clock, row_wait
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.models import Queue, QueueActivity

log = structlog.get_logger(__name__)


def pause(name: str, by: str) -> bool:
    """Stop new claims; running jobs continue. Return False if the queue is already paused. Raises
    Blocked if another transaction holds the queue's row for long."""
    with row_wait.bounded(Queue, name=name):
        changed = Queue.objects.filter(name=name, paused_at=None).update(
            paused_at=clock.now(), paused_by=by
        )
    log.info("queues.paused", queue=name, by=by, changed=bool(changed))
    return bool(changed)


def resume(name: str, by: str) -> bool:
    """Allow claims again and wake the queue. Return False if it is not paused. Raises Blocked as
    `pause`."""
    with row_wait.bounded(Queue, name=name):
        changed = Queue.objects.filter(name=name, paused_at__isnull=False).update(
            paused_at=None, paused_by=""
        )
        if changed:
            with row_wait.bounded(QueueActivity, name=name):
                QueueActivity.objects.filter(name=name).update(awake=False)
            wake.on_commit({name})
    log.info("queues.resumed", queue=name, by=by, changed=bool(changed))
    return bool(changed)
