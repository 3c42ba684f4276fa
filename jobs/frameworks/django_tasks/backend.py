"""The backend: it enqueues the calls of tasks as jobs, and returns their results."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.apps import apps
from django.core.checks import CheckMessage, Error

from tailrace.db import clock
from tailrace.environment.suggest import did_you_mean
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.frameworks.django_tasks import registration, results
from tailrace.jobs.frameworks.django_tasks.framework import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    normalize_json,
    signals,
)
from tailrace.jobs.frameworks.django_tasks.payload import TaskPayload

URGENT = 51
MOST_DIGITS = 18
"""Of a result's id: all of them fit into PostgreSQL's bigint."""


class Backend(BaseTaskBackend):
    """Runs tasks as jobs: each task function has a queue of its own, with its path as the name.

    OPTIONS has the defaults of all tasks, such as `max_attempts`, and in `tasks` the options of
    single tasks by path: see docs/how-to/django-tasks.md.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def validate_task(self, task: Task) -> None:
        """Raise InvalidTask if the task is invalid. A task that is declared while Django starts
        gets its handler here."""
        super().validate_task(task)
        registration.register(task, self.options)

    def enqueue(self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TaskResult:
        """Create the job of one call in the caller's transaction. The result's id is the job's.

        Raises InvalidTask, TypeError if an argument is not JSON, or InvalidJob.
        """
        self.validate_task(task)
        path = task.module_path
        if registration.handler_of(path) is None:
            raise InvalidTask(
                f"no worker knows the task {path!r}: define it in a module `tasks` of an installed"
                f" app with the backend {self.alias!r}, or name it in its OPTIONS['tasks']"
            )
        payload = TaskPayload(
            args=normalize_json(args),
            kwargs=normalize_json(kwargs),
            priority=task.priority,
            queue_name=task.queue_name,
            backend=self.alias,
            run_after=task.run_after,
            enqueued_at=clock.now(),
        )
        job_id = enqueue(path, payload, due_at=task.run_after, priority=_level(task.priority))
        assert job_id is not None  # noqa: S101  (it has no event)
        result = results.new(task, job_id, payload)
        signals.task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> TaskResult:
        """Return the result with this id. Raises TaskResultDoesNotExist if there is no such job of
        a task: it is not committed yet, or was pruned."""
        text = str(result_id)
        is_id = text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS
        result = results.read(int(text)) if is_id else None
        if result is None:
            raise TaskResultDoesNotExist(result_id)
        return result

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        if not apps.is_installed("tailrace.jobs"):
            text = f"TASKS[{self.alias!r}] needs the apps tailrace.events and tailrace.jobs"
            hint = "INSTALLED_APPS += ['tailrace.events', 'tailrace.jobs']"
            return [Error(text, hint=hint, id="tailrace_jobs.E031")]
        options = f"TASKS[{self.alias!r}]['OPTIONS']"
        return [Error(f"{options} {each}", id="tailrace_jobs.E032") for each in self._problems()]

    def _problems(self) -> Iterator[str]:
        yield from _unknown(self.options, (*registration.OPTIONS, "tasks"))
        for path, options in self.options.get("tasks", {}).items():
            handler = registration.handler_of(path)
            if handler is None:
                known = did_you_mean(path, registration.paths())
                yield f"contains options for {path!r}; there is no such task{known}"
                continue
            yield from _unknown(options, registration.OPTIONS, f" for {path!r}")
            arguments = [*inspect.signature(handler.task.func).parameters]
            if handler.lane_argument not in (None, *arguments):
                yield (
                    f"has the lane {handler.lane_argument!r} for {path!r}; it must be one of the"
                    f" function's arguments: {', '.join(arguments)}"
                )


def _unknown(given: Mapping[str, Any], known: Sequence[str], where: str = "") -> Iterator[str]:
    for name in sorted(set(given) - set(known)):
        yield f"contains {name!r}{where}, which is no option of tasks{did_you_mean(name, known)}"


def _level(priority: int) -> int:
    """Return the job's priority, 0 (first) to 3, for a task's priority, -100 to 100 (first). Tasks
    above, at and below the default of 0 keep their order."""
    if priority > 0:
        return 0 if priority >= URGENT else 1
    return 2 if priority == 0 else 3
