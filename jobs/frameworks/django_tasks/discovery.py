"""Find the tasks of all apps when a process starts, so that each process knows the same queues."""

from importlib import import_module

from django.apps import apps
from django.utils.module_loading import import_string

from tailrace.environment.discovery import find_module
from tailrace.jobs.frameworks.django_tasks import registration
from tailrace.jobs.frameworks.django_tasks.backend import Backend
from tailrace.jobs.frameworks.django_tasks.framework import Task, task_backends


def discover() -> None:
    """Import the modules `tasks` of all apps, and the tasks that OPTIONS names; their handlers are
    declared thereby. Does nothing if no alias in TASKS has this backend."""
    backends = [each for each in task_backends.all() if isinstance(each, Backend)]
    if not backends:
        return
    for app in apps.get_app_configs():
        # Ours has the Celery tasks of all handlers: it comes last, when a worker imports it.
        if app.name != "tailrace.jobs" and (module := find_module(app, "tasks")):
            import_module(module)
    for backend in backends:
        for path in backend.options.get("tasks", {}):
            _declare(path, backend)
    registration.is_complete = True


def _declare(path: str, backend: Backend) -> None:
    """Declare the task with this path, which may have another backend by default. A wrong path is
    reported by the backend's check."""
    try:
        task = import_string(path)
    except ImportError:
        return
    if isinstance(task, Task):
        task.using(backend=backend.alias)
