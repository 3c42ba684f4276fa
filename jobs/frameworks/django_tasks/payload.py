"""The payload of a task's job: the arguments of the call, and what the caller set on the task."""

from datetime import datetime
from typing import Any

from pydantic import BaseModel

from tailrace.jobs.frameworks.django_tasks.framework import (
    DEFAULT_TASK_BACKEND_ALIAS,
    DEFAULT_TASK_PRIORITY,
    DEFAULT_TASK_QUEUE_NAME,
    Task,
)

_SET_BY_USING = ("priority", "queue_name", "backend", "run_after")


class TaskPayload(BaseModel):
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    priority: int = DEFAULT_TASK_PRIORITY
    queue_name: str = DEFAULT_TASK_QUEUE_NAME
    backend: str = DEFAULT_TASK_BACKEND_ALIAS
    run_after: datetime | None = None
    enqueued_at: datetime | None = None
    """By the clock of the process that enqueued it."""

    def task_as_enqueued(self, declared: Task) -> Task:
        """Return the declared task with the caller's changes. Raises InvalidTask if the backend no
        longer allows them, such as after the removal of a queue name from QUEUES."""
        given = {name: getattr(self, name) for name in _SET_BY_USING}
        changed = {name: value for name, value in given.items() if getattr(declared, name) != value}
        return declared.using(**changed) if changed else declared
