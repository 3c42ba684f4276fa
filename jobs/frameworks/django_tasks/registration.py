"""The handlers of the tasks that this process knows, and their options."""

from collections.abc import Mapping
from inspect import iscoroutinefunction
from typing import Any

from tailrace.jobs.engine import registry
from tailrace.jobs.frameworks.django_tasks.framework import Task
from tailrace.jobs.frameworks.django_tasks.handler import (
    AsyncTaskHandler,
    SyncTaskHandler,
    TaskHandler,
)
from tailrace.jobs.handler import Backoff

OPTIONS = (
    "max_attempts", "backoff", "claim_timeout", "time_limit", "max_running", "concurrency",
    "per_destination", "fair", "ordered", "lane",
)  # fmt: skip
"""The options of a task: fields of its handler, and `lane`, the name of an argument."""

_handlers: dict[str, type[TaskHandler]] = {}
"""By the paths of the functions."""
is_complete = False
"""Whether `discover` has ended: workers know the same tasks as this process, and no others."""


def register(task: Task, options: Mapping[str, Any]) -> None:
    """Declare the handler of a task, unless it has one or `discover` has ended."""
    path = task.module_path
    if is_complete or path in _handlers:
        return
    base = AsyncTaskHandler if iscoroutinefunction(task.func) else SyncTaskHandler
    names = ("__module__", "__qualname__", "__doc__")
    fields = {name: getattr(task.func, name) for name in names} | {"name": path, "task": task}
    own = options.get("tasks", {}).get(path, {})
    _handlers[path] = type(task.name, (base,), fields | _fields({**options, **own}))
    registry.clear()


def handler_of(path: str) -> type[TaskHandler] | None:
    return _handlers.get(path)


def paths() -> list[str]:
    return sorted(_handlers)


def _fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a handler. Wrong values are found by the checks of handlers."""
    fields = {name: options[name] for name in OPTIONS if name in options}
    if isinstance(fields.get("backoff"), list | tuple):
        fields["backoff"] = Backoff(*fields["backoff"])
    if "lane" in fields:
        fields["lane_argument"] = fields.pop("lane")
    return fields
