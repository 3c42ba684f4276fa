"""Which apps and signatures have tasks that run as jobs."""

from collections.abc import Iterable
from typing import Any

from celery import group
from celery.canvas import _chain, _chord, maybe_signature

from tailrace.jobs.frameworks.celery_tasks.task import runs_as_job

INSTALLED = "_runs_tasks_as_jobs"
"""The attribute of an app with tasks that run as jobs: the class of its former result backend."""


def has_durable(app: Any) -> bool:
    """Whether tasks of this app run as jobs."""
    return hasattr(app, INSTALLED)


def is_durable(signature: Any, app: Any) -> bool:
    """Whether the tasks that are called when this signature is applied run as jobs: of a chain the
    first one, of a group and of the header of a chord all of them."""
    signature = maybe_signature(signature, app=app)
    if isinstance(signature, group):
        tasks = without_empty(signature.tasks, app)
        return bool(tasks) and all(is_durable(each, app) for each in tasks)
    if isinstance(signature, _chain):
        return bool(signature.tasks) and is_durable(signature.tasks[0], app)
    if isinstance(signature, _chord):
        header = without_empty(getattr(signature.tasks, "tasks", signature.tasks), app)
        return all(is_durable(each, app) for each in (*header, signature.body))
    return runs_as_job(app._tasks.get(signature["task"]))


def without_empty(tasks: Iterable[Any], app: Any) -> list[Any]:
    """Return the tasks of a group or a header without empty chains, which Celery leaves out."""
    signatures = (maybe_signature(each, app=app) for each in tasks)
    return [each for each in signatures if not isinstance(each, _chain) or each.tasks]
