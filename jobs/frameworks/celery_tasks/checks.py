"""System checks of the settings of Celery that matter to tasks that run as jobs."""

from collections.abc import Iterator
from typing import Any

from django.core.checks import CheckMessage, Error, Warning, register

from tailrace.jobs.frameworks.celery_tasks.handlers import declared, rate_per_second
from tailrace.jobs.frameworks.celery_tasks.message.opaque import is_accepted

POOLS = ("prefork", "solo", "processes")
"""The pools whose calls can be interrupted; `processes` is another name of prefork."""


@register("jobs")
def check_celery_tasks(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    apps = {id(handler.app): handler.app for handler in declared.values()}
    return [
        *(message for app in apps.values() for message in _of_app(app)),
        *(message for name in sorted(declared) for message in _of_task(name)),
    ]


def _of_app(app: Any) -> Iterator[CheckMessage]:
    conf = app.conf
    if conf.task_protocol != 2:
        yield _error(
            "E033",
            f"task_protocol of Celery is {conf.task_protocol}; tasks that run as jobs need 2",
            "remove CELERY_TASK_PROTOCOL",
        )
    pool = conf.worker_pool
    if pool not in POOLS:
        yield Warning(
            f"worker_pool of Celery is {pool!r}: in it, calls of tasks that run as jobs have no"
            " time limits, and do not end when they are revoked",
            hint="CELERY_WORKER_POOL = 'prefork'",
            id="tailrace_jobs.W034",
        )
    if conf.worker_deduplicate_successful_tasks:
        yield Warning(
            "worker_deduplicate_successful_tasks of Celery has no meaning for tasks that run as"
            " jobs: a job that has ended is not run again",
            hint="remove CELERY_WORKER_DEDUPLICATE_SUCCESSFUL_TASKS, unless other tasks need it",
            id="tailrace_jobs.W035",
        )


def _of_task(name: str) -> Iterator[CheckMessage]:
    app = declared[name].app
    task = app._tasks.get(name)
    if task is None:
        return
    if task.serializer != "json" and not is_accepted(app, task.serializer):
        yield _error(
            "E036",
            f"task {name!r} has the serializer {task.serializer!r}; the arguments of a task that"
            " runs as a job are JSON, or in a serializer of your own in accept_content",
            "CELERY_TASK_SERIALIZER = 'json', and serializer='json' or none for the task",
        )
    if "@" in name:
        yield _error(
            "E037",
            f"the name of task {name!r} has an @; the handlers of a task in several queues are"
            " called name@queue",
            "give it another name: @shared_task(name=…)",
        )
    try:
        rate_per_second(task)
    except (KeyError, ValueError):
        yield _error(
            "E038",
            f"task {name!r} has the rate limit {task.rate_limit!r}, which cannot be read",
            "rate_limit='10/s', '10/m' or '10/h'",
        )


def _error(id: str, text: str, line: str) -> CheckMessage:
    return Error(text, hint=line, id=f"tailrace_jobs.{id}")
