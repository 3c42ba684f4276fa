"""Declare the handlers of tasks, and install what their app needs."""

from functools import partial
from typing import Any

from celery import _state

from tailrace.jobs.engine import registry
from tailrace.jobs.frameworks.celery_tasks import (
    builtin,
    checks,  # noqa: F401  (Django runs them)
    control,  # noqa: F401  (the engine calls it when jobs are cancelled)
    running,
    task,
    worker,
)
from tailrace.jobs.frameworks.celery_tasks.calling import (
    inspection,  # noqa: F401  (signal of the worker)
    replacing,
)
from tailrace.jobs.frameworks.celery_tasks.calling.run import run
from tailrace.jobs.frameworks.celery_tasks.durable import INSTALLED, has_durable
from tailrace.jobs.frameworks.celery_tasks.handlers import CeleryTaskHandler, declared
from tailrace.jobs.frameworks.celery_tasks.publishing import canvas, silence
from tailrace.jobs.frameworks.celery_tasks.publishing.producer import Producer
from tailrace.jobs.handler import ClaimedJob

BACKEND = "tailrace.jobs.frameworks.celery_tasks.results.backend:Backend"
CONTROL, OWN_CONTROL = (
    "celery.app.control:Control",
    "tailrace.jobs.frameworks.celery_tasks.control:Control",
)


class RunsTask(CeleryTaskHandler):
    """Runs the calls of one task."""

    def handle(self, job: ClaimedJob) -> Any:
        return run(self.task, job)


def register(app: Any, name: str) -> None:
    """Declare the handler of a task that is bound to this app."""
    _install(app)
    if name in declared:
        return
    cls = type(app._tasks[name])
    fields = {
        "name": name, "task_name": name, "app": app, "__module__": cls.__module__,
        "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
        "max_attempts": cls.max_attempts,
    }  # fmt: skip
    declared[name] = type(cls.__name__, (RunsTask,), fields)
    registry.clear()


def _install(app: Any) -> None:
    if has_durable(app):
        return
    setattr(app, INSTALLED, app.backend_cls)
    app.backend_cls, app._backend_cache = BACKEND, None
    vars(app._local).pop("backend", None)
    if app.control_cls == CONTROL:
        app.control_cls = OWN_CONTROL
        vars(app).pop("control", None)
    app.send_task = partial(_send_task, app.send_task, app)
    worker.keep_connections()
    builtin.add(app)


def _send_task(send_task: Any, app: Any, name: str, *args: Any, **options: Any) -> Any:
    """Send a task by its name, as `Task.apply_async` does if it runs as a job."""
    known = app._tasks.get(name) if name in declared else None
    if task.runs_as_job(known) and not isinstance(options.get("producer"), Producer):
        options["producer"] = Producer(known, options)
    return send_task(name, *args, **options)


def bind_tasks() -> None:
    """Let Celery bind the tasks that are not bound yet, also to an app that was made after ours was
    set up."""
    for app in list(_state._get_active_apps()):
        if not app.finalized:
            app.finalize()


silence.install()
canvas.install()  # at once: a group may be called before the first of its tasks is bound
registry.before_listing.append(bind_tasks)
task.set_parts(task.Parts(register, Producer, running.is_of_call, replacing.replace))
