"""Beat's scheduler: django-celery-beat's, which ends when it cannot read its schedule."""

from datetime import datetime
from typing import Any

import structlog
from django.db import DatabaseError, InterfaceError
from django_celery_beat.schedulers import DatabaseScheduler

log = structlog.get_logger(__name__)


class Scheduler(DatabaseScheduler):
    """Continues with the schedule that it has while the database is away."""

    def all_as_schedule(self) -> dict[str, Any]:
        """Return the entries of the database, or those of before if it does not answer.

        They are read again at the next look, a second later.
        """
        try:
            return super().all_as_schedule()
        except (DatabaseError, InterfaceError) as error:
            log.warning("beat.schedule_not_read", error=str(error).strip())
            self._last_full_sync = datetime.min
            return self._schedule or {}
