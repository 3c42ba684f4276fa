"""Find the tasks that run as jobs when a process starts, so that each process knows the same
handlers. Imports our modules only if a project has such tasks."""

import sys
from importlib import import_module
from typing import Any

from celery import _state
from celery.loaders.base import BaseLoader
from django.apps import apps

from tailrace.environment.discovery import find_module

TASK = "tailrace.jobs.frameworks.celery_tasks.task"
REGISTRATION = "tailrace.jobs.frameworks.celery_tasks.registration"
_OF_CELERY = ("celery.app.task:Task", "celery.contrib.django.task:DjangoTask")


def discover() -> None:
    """Let each Celery worker and beat import our tasks, also of a Celery app that does not search
    Django's apps for tasks: without them it would leave all jobs to others, without a word.

    Import the tasks of all apps, if a Celery app of the project has our class of tasks, or a
    module with our class is imported already; their handlers are declared thereby."""
    BaseLoader.builtin_modules |= {"tailrace.jobs.tasks"}
    celery_apps = list(_state._get_active_apps())
    for app in celery_apps:
        if app.task_cls not in _OF_CELERY:
            _ = app.Task  # imports the project's class
    if TASK in sys.modules:
        find_tasks()


def find_tasks(**kwargs: Any) -> None:
    """Import the modules `tasks` of all apps, and declare the handlers of the tasks in them that
    run as jobs. Each app with such tasks has our result backend, control and `send_task` by then,
    also in a process that calls none of them."""
    for config in apps.get_app_configs():
        # Ours has the Celery tasks of all handlers: it comes last, when a worker imports it.
        if config.name != "tailrace.jobs" and (module := find_module(config, "tasks")):
            import_module(module)
    if TASK in sys.modules:
        import_module(REGISTRATION).bind_tasks()
