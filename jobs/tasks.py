"""The Celery tasks: one per handler, with the handler's name and queue."""

import gc
import signal
import threading
from typing import Any

from celery import current_app, signals
from django.conf import settings
from kombu import Queue as KombuQueue

from tailrace.jobs import registry, shutdown
from tailrace.jobs.engine import in_flight
from tailrace.jobs.engine.drain import drain
from tailrace.jobs.handler import Handler
from tailrace.jobs.maintenance import upkeep  # noqa: F401  (signals of workers and beats)

HARD_LIMIT_MARGIN = 60
"""Seconds after the end of the longest possible drain until Celery kills the child process: for
code that hangs where no signal reaches it."""


def register() -> None:
    """Register a task for each handler on the current Celery app, and declare the queues."""
    for handler in registry.all_handlers().values():
        _register(handler)
    declare_queues()


def declare_queues() -> None:
    """Configure the queue of each handler on the current Celery app."""
    names = list(registry.all_handlers())
    kind = current_app.conf.task_default_queue_type
    arguments = {"x-queue-type": kind} if kind == "quorum" else None
    current_app.conf.task_queues = [
        KombuQueue(name, routing_key=name, queue_arguments=arguments) for name in names
    ]
    current_app.conf.task_routes = {name: {"queue": name} for name in names}


def _register(handler: Handler) -> None:
    def work() -> int:
        shutdown.end_once()
        if shutdown.requested():
            return 0
        if handler.is_async():
            in_flight.notify(handler.name)
            return 0
        with shutdown.deferred():
            return drain(handler.name)

    work.__doc__ = handler.description()
    limit = handler.time_limit or settings.JOBS_TIME_LIMIT
    current_app.task(
        name=handler.name,
        ignore_result=True,
        time_limit=settings.JOBS_DRAIN_SECONDS + limit + HARD_LIMIT_MARGIN,
    )(work)


@signals.worker_before_create_process.connect
def share_what_is_loaded(**kwargs: Any) -> None:
    """Exclude the objects loaded so far from garbage collection. A collection in a child would
    write to the memory pages that it shares with its parent, and so copy them."""
    gc.freeze()


@signals.worker_process_shutdown.connect
@signals.worker_shutdown.connect
def end_calls_in_flight(**kwargs: Any) -> None:
    """Settle the calls of async handlers in flight before the process ends. It is a child of a
    prefork pool, or the process of a worker with another pool."""
    if threading.current_thread() is threading.main_thread():
        for number in shutdown.SIGNALS:  # a second signal would end the process before that
            signal.signal(number, signal.SIG_IGN)
    in_flight.shut_down(min(shutdown.seconds_left(), settings.SHUTDOWN_GRACE))


register()
