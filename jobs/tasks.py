"""The Celery tasks, one per handler with its name and queue, and the shutdown of workers."""

import gc
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import structlog
from billiard import active_children
from billiard import pool as billiard_pool
from celery import Task, bootsteps, current_app, signals

from tailrace.db.query import execute, query
from tailrace.environment.conf import conf, on_platform
from tailrace.jobs.engine import in_flight, registry
from tailrace.jobs.engine.drain import engine_session, task_of
from tailrace.jobs.engine.maintenance import upkeep  # noqa: F401  (signals of workers and beats)
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.engine.waking.activity import AWAKE, SOON_AGAIN
from tailrace.jobs.engine.waking.wake import broker_queue
from tailrace.jobs.handler import Handler
from tailrace.jobs.runtime import shutdown

log = structlog.get_logger(__name__)

HARD_LIMIT_MARGIN = 60
"""Seconds after the end of the longest possible drain until Celery kills the child process: for
code that hangs where no signal reaches it."""
LAST_SECONDS = 2.0
"""This many seconds after the timeout, the main process ends even if it still has children."""
POLL_SECONDS = 0.25
LONGEST_WORK = 31 * 86_400
"""Seconds. Handlers without a queue of their own limit each call themselves."""

if on_platform():
    # A child that ends waits until the main process has read the results of its last tasks, which a
    # main process that is ending mostly does not do: wait 2 seconds instead of 30. Billiard has no
    # setting for it. Nothing is lost: the jobs are settled, and the results of tasks are empty.
    billiard_pool.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_LIMIT = 20  # times 0.1 s


def register() -> None:
    """Register a task for each handler on the current Celery app, and declare the queues. Limits
    that a project sets for all its tasks do not apply to these."""
    for handler in with_own_queue():
        work = task_of(handler)
        work.__doc__ = handler.description()
        limit = handler.time_limit or conf.JOBS_TIME_LIMIT
        _add_task(handler.name, work, conf.JOBS_DRAIN_SECONDS + limit + HARD_LIMIT_MARGIN)
    _add_task(wake.WORK, work_off, LONGEST_WORK)
    declare_queues()


def with_own_queue() -> list[Handler]:
    """Return the handlers that have a queue of their own at the broker, and so a Celery task."""
    handlers = registry.all_handlers().values()
    return [handler for handler in handlers if type(handler).worker_queue is None]


def work_off(name: str) -> int:
    """Run jobs of the handler with this name. During a deploy, a worker with older code may get the
    message, and leaves the jobs to others."""
    if registry.find(name) is None:
        log.warning("work.unknown_handler", queue=name, hint="is this worker's code older?")
        with engine_session(name):
            execute(SOON_AGAIN, name=name)
        return 0
    handler = registry.get(name)
    settled = task_of(handler)()
    if not settled and handler.one_job_per_drain:
        settled = _work_off_another(handler)
    return settled


def _work_off_another(handler: Handler) -> int:
    """Run one job of another queue with the same workers, if one is due; return the number of
    settled jobs. The process is replaced after this run of its task, which often takes longer than
    a job: so a wake-up without a job of its own is of use while others wait."""
    woken: list[str] = []
    with engine_session(handler.name):
        woken = [name for (name,) in query(AWAKE, name=handler.name)]
    for other in filter(None, map(registry.find, woken)):
        is_beside = other.one_job_per_drain and other.worker_queue == handler.worker_queue
        if is_beside and (settled := task_of(other)()):
            return settled
    return 0


def _add_task(name: str, work: Callable[..., int], time_limit: float) -> None:
    limits: dict[str, Any] = {"time_limit": time_limit}
    if current_app.conf.task_default_rate_limit:
        limits["rate_limit"] = 0
    if current_app.conf.task_soft_time_limit:
        limits["soft_time_limit"] = time_limit
    # A project's own class of tasks may run its tasks as jobs; these run the jobs.
    current_app.task(
        name=name, base=Task, ignore_result=True, store_errors_even_if_ignored=False, **limits
    )(work)


def declare_queues() -> None:
    """Configure the queue of each handler on the current Celery app. A project's own queues and
    routes stay; if it has configured no queues, Celery's default queue stays."""
    amqp, names = current_app.amqp, [handler.name for handler in with_own_queue()]
    others = {} if on_platform() else amqp.Queues(current_app.conf.task_queues)
    current_app.conf.task_queues = [
        *(queue for name, queue in others.items() if name not in names),
        *map(broker_queue, names),
    ]
    vars(amqp).pop("queues", None)  # if they were read before


@signals.worker_before_create_process.connect
def share_what_is_loaded(**kwargs: Any) -> None:
    """Exclude the objects loaded so far from garbage collection. A collection in a child would
    write to the memory pages that it shares with its parent, and so copy them."""
    gc.freeze()


@signals.worker_process_shutdown.connect
@signals.worker_shutdown.connect
def end_calls_in_flight(**kwargs: Any) -> None:
    """Settle the calls of async handlers in flight before the process ends: a child of a prefork
    pool, or the whole worker with another pool."""
    if threading.current_thread() is threading.main_thread():
        for number in shutdown.SIGNALS:  # a second signal would end the process before that
            signal.signal(number, signal.SIG_IGN)
    in_flight.shut_down(min(shutdown.seconds_left(), conf.SHUTDOWN_TIMEOUT))


@signals.worker_shutting_down.connect
def begin_shutdown(**kwargs: Any) -> None:
    shutdown.begin()


class TellChildren(bootsteps.StartStopStep):
    """Begins the shutdown of a worker that ends without a signal, by `celery control shutdown`."""

    def close(self, parent: Any) -> None:
        shutdown.begin()


@signals.worker_init.connect
def _add_step(sender: Any, **kwargs: Any) -> None:
    sender.app.steps["worker"].add(TellChildren)


@signals.worker_ready.connect
def _watch_main_process(**kwargs: Any) -> None:
    if on_platform():  # in another project, the worker may still run tasks of that project
        threading.Thread(target=_end_in_time, name="shutdown", daemon=True).start()
    if threading.current_thread() is threading.main_thread():
        for number in (*shutdown.SIGNALS, signal.SIGINT):
            _tell_children_first(number)


def _tell_children_first(number: signal.Signals) -> None:
    """Notify the children of this signal before Celery handles it. In a cold shutdown Celery waits
    for the children before it sends `worker_shutting_down`, and replaces children that have ended
    in the meantime."""
    handle = signal.getsignal(number)

    def tell(signum: int, frame: FrameType | None) -> None:
        shutdown.begin()
        if callable(handle):
            handle(signum, frame)

    if callable(handle):
        signal.signal(number, tell)


def _end_in_time() -> None:
    """End the main process and its children LAST_SECONDS after the timeout. A child that hangs
    where no signal reaches it must not prevent the restart of the worker."""
    while shutdown.seconds_left() > -LAST_SECONDS:
        time.sleep(POLL_SECONDS)
    children = [child.pid for child in active_children() if child.pid]
    log.error("shutdown.forced", children=len(children), timeout=conf.SHUTDOWN_TIMEOUT)
    for pid in children:
        with suppress(ProcessLookupError):  # it has ended
            os.kill(pid, signal.SIGKILL)
    os._exit(1)


register()
