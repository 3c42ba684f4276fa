"""The project's Celery application, with the settings that the suite has for its own."""

import os
from typing import Any

from celery import Celery
from celery.worker import state
from celery.worker.control import control_command, inspect_command

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.celery_suite.project.settings")
app = Celery(
    "celery_suite",
    task_cls=os.environ["CELERY_SUITE_TASK"],
    broker=os.environ["TEST_BROKER"],
    backend=os.environ["TEST_BACKEND"],
    include=["t.integration.tasks"],
)
app.conf.update(result_extended=True, task_create_missing_queues=False)
app.set_default()
app.autodiscover_tasks()


@inspect_command(args=[("id", str)])
def has_run(state_: Any, id: str) -> bool:
    """Return whether this worker has run the message with this id to its end."""
    return id in state.successful_requests


@control_command()
def clear_revoked_stamps(state_: Any) -> None:
    from tailrace.jobs.models import CeleryTask

    state.revoked_stamps.clear()
    CeleryTask.objects.filter(task_id__startswith="stamp:").delete()
