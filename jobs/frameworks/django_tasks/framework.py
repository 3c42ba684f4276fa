"""The names of the task framework: Django's own from 6.0 on, before that the package django-tasks,
whose names are the same."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING or find_spec("django.tasks") is None:
    from django_tasks import base, signals, task, task_backends
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.exceptions import InvalidTaskError as InvalidTask
    from django_tasks.exceptions import TaskResultDoesNotExist
    from django_tasks.utils import normalize_json
else:
    from django.tasks import base, signals, task, task_backends
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.exceptions import InvalidTask, TaskResultDoesNotExist
    from django.utils.json import normalize_json

DEFAULT_TASK_BACKEND_ALIAS = base.DEFAULT_TASK_BACKEND_ALIAS
DEFAULT_TASK_PRIORITY = base.DEFAULT_TASK_PRIORITY
DEFAULT_TASK_QUEUE_NAME = base.DEFAULT_TASK_QUEUE_NAME
Task = base.Task
TaskContext = base.TaskContext
TaskError = base.TaskError
TaskResult = base.TaskResult
TaskResultStatus = base.TaskResultStatus

__all__ = [
    "DEFAULT_TASK_BACKEND_ALIAS", "DEFAULT_TASK_PRIORITY", "DEFAULT_TASK_QUEUE_NAME",
    "BaseTaskBackend", "InvalidTask", "Task", "TaskContext", "TaskError", "TaskResult",
    "TaskResultDoesNotExist", "TaskResultStatus", "normalize_json", "signals", "task",
    "task_backends",
]  # fmt: skip
