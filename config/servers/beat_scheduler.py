from datetime import datetime
from typing import Any

import structlog
from django.db import DatabaseError, InterfaceError
from django_celery_beat.schedulers import DatabaseScheduler

log = structlog.get_logger(__name__)


class Scheduler(DatabaseScheduler):
    """Continues with the last schedule while the database is unavailable.

    django-celery-beat's own scheduler ends when it cannot read its schedule.
    """

    def all_as_schedule(self) -> dict[str, Any]:
        """Return the entries of the database, or the last ones if it is unavailable; the next call,
        a second later, reads them again."""
        try:
            return super().all_as_schedule()
        except (DatabaseError, InterfaceError) as error:
            log.warning("beat.schedule_not_read", error=str(error).strip())
            self._last_full_sync = datetime.min
            return self._schedule or {}
