"""Remove the periodic tasks of earlier versions, in which beat sent messages for the upkeep.

This is done when a process of this version starts its own upkeep, and not at migrate: until then
the processes of the earlier version need them. One of their beats that is started again brings them
back, so `prune` removes them, too.
"""

import structlog
from django_celery_beat.models import PeriodicTask

from tailrace.db.limits import time_limits

log = structlog.get_logger(__name__)

NAMES = ("jobs.tick", "jobs.sweep", "jobs.prune")
STATEMENT_SECONDS, LOCK_SECONDS = 10, 2


def remove() -> int:
    """Delete their rows, and let running beats read theirs again; return how many there were.

    Raises OperationalError if another transaction holds the lock on one of them.
    """
    with time_limits(STATEMENT_SECONDS, LOCK_SECONDS):
        count, _ = PeriodicTask.objects.filter(name__in=NAMES, task__in=NAMES).delete()
    if count:
        log.info("upkeep.former_tasks_removed", count=count)
    return count
