"""What the suites use of the backends that they were written for, made of our backend."""

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from tailrace.django_tasks import Backend
from tailrace.jobs.engine import registry
from tailrace.jobs.frameworks.django_tasks import framework
from tailrace.jobs.frameworks.django_tasks.framework import Task, TaskResult
from tailrace.jobs.models import Job
from tailrace.jobs.testing.perform import work_off

DatabaseBackend, compat = Backend, framework
logger = logging.getLogger("django_tasks_db")


def uncounted(*args: Any) -> Any:
    """In place of assertNumQueries: our worker sends other statements."""
    return nullcontext()


def work(**options: Any) -> None:
    """In place of `db_worker --batch`: run what is due with the engine of our workers."""
    work_off([name for name in registry.all_handlers() if name.startswith("tasks.tasks.")])


class ImmediateBackend(Backend):
    """Our backend, with a worker that runs each task at once."""

    def enqueue(self, task: Task, args: Sequence[Any], kwargs: Any) -> TaskResult:
        result = super().enqueue(task, args, kwargs)
        work()
        result.refresh()
        return result


class DummyBackend(Backend):
    """Our backend without a worker. `results` and `clear` are of the tests only."""

    @property
    def results(self) -> list[TaskResult]:
        return [
            self.get_result(str(id)) for id in _jobs().order_by("pk").values_list("pk", flat=True)
        ]

    def clear(self) -> None:
        Job.objects.all().delete()


def _jobs() -> QuerySet[Job]:
    return Job.objects.filter(handler__startswith="tasks.tasks.")


class Results:
    """The reads of django-tasks-db's table that its tests make, on the table of jobs."""

    all = staticmethod(_jobs)

    def using(self, alias: str) -> "Results":
        return self

    def count(self) -> int:
        return _jobs().count()

    def ready(self) -> QuerySet[Job]:
        return _jobs().filter(state="pending", due_at__lte=Now())

    def successful(self) -> QuerySet[Job]:
        return _jobs().filter(state="completed")

    def failed(self) -> QuerySet[Job]:
        return _jobs().filter(state="failed")


class DBTaskResult:
    objects = Results()


class DBTaskResultAdmin:
    pass


def get_date_max() -> None:
    """The end of time, which stands for no `run_after` in django-tasks-db's table."""


exclusive_transaction, normalize_uuid = transaction.atomic, str
