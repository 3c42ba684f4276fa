"""The Celery tasks: one per handler, of its name and in its queue, and beat's three."""

from typing import Any

from celery import current_app
from celery.signals import beat_init
from django.conf import settings
from kombu import Queue as KombuQueue

from jobs import pulse, registry, sync  # noqa: F401  (pulse: connects to the worker's signals)
from jobs.drain import drain
from jobs.handler import Handler
from jobs.prune import prune
from jobs.reconnect import on_a_live_connection
from jobs.sweep import sweep
from jobs.tick import tick

BEAT_TASKS = ("jobs.tick", "jobs.sweep", "jobs.prune")
HARD_LIMIT_MARGIN = 60
"""Seconds that Celery waits, beyond what a drain may take, before it kills the worker child: the
last resort against code that hangs where no signal reaches it."""


def register() -> None:
    """Register a task per handler on the current Celery app, and the queues that workers serve."""
    for handler in registry.everything().values():
        _register(handler)
    for name, work in (("jobs.tick", tick), ("jobs.sweep", sweep), ("jobs.prune", prune)):
        current_app.task(name=name, ignore_result=True)(_fresh(work))
    names = (*BEAT_TASKS, *registry.everything())
    kind = current_app.conf.task_default_queue_type
    arguments = {"x-queue-type": kind} if kind == "quorum" else None
    current_app.conf.task_queues = [
        KombuQueue(name, routing_key=name, queue_arguments=arguments) for name in names
    ]
    current_app.conf.task_routes = {name: {"queue": name} for name in names}


def _register(handler: Handler) -> None:
    def work() -> int:
        return drain(handler.name)

    work.__doc__ = handler.description()
    limit = handler.time_limit or settings.JOBS_TIME_LIMIT
    calls = 2 if handler.in_batches() else 1  # a batch that hangs, and then its first job alone
    current_app.task(
        name=handler.name,
        ignore_result=True,
        time_limit=settings.JOBS_DRAIN_SECONDS + calls * limit + HARD_LIMIT_MARGIN,
    )(work)


def _fresh(work: Any) -> Any:
    """Run on a connection that is alive, even if PostgreSQL was restarted since the last task."""

    def task() -> None:
        on_a_live_connection(work)

    task.__doc__ = work.__doc__
    return task


@beat_init.connect
def _at_start_of_beat(**kwargs: Any) -> None:
    sync.add()


register()
