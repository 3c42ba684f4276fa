"""What Celery's worker does around each task, where a job must differ."""

from typing import Any

from celery import signals
from celery._state import get_current_task
from celery.fixups.django import DjangoWorkerFixup

from tailrace.jobs.engine.waking.wake import WORK
from tailrace.jobs.frameworks.celery_tasks import running

counts_tasks = False
"""Whether this worker replaces its processes after a number of tasks (`max_tasks_per_child`). Then
each Celery task of ours runs one job."""


@signals.worker_init.connect
def note_limit(sender: Any, **kwargs: Any) -> None:
    global counts_tasks
    counts_tasks = bool(getattr(sender, "max_tasks_per_child", None))


def keep_connections() -> None:
    """Keep the database connections in the Celery task that runs jobs, and around each of their
    calls. Celery closes them for each task. The engine checks its own before it uses it again, and
    proves the others clean after each call."""
    close = DjangoWorkerFixup.close_database
    if hasattr(close, "__wrapped__"):
        return

    def close_database(self: Any, **kwargs: Any) -> None:
        task = get_current_task()
        if running.current.get() is None and (task is None or task.name != WORK):
            close(self, **kwargs)

    close_database.__wrapped__ = close  # type: ignore[attr-defined]
    DjangoWorkerFixup.close_database = close_database
