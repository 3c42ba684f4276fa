"""Celery's events of the tasks that run as jobs, for Flower and `celery events`: under their own
names and ids. A worker sends them if it sends events of other tasks: with `-E`, the setting
`worker_send_task_events`, or the command `enable_events`, which Flower sends. They may be lost, and
no call waits for the broker."""

import mmap
import time
import traceback
from collections import Counter, deque
from itertools import groupby
from operator import itemgetter
from typing import Any

import structlog
from celery import signals
from celery.utils.saferepr import saferepr

from tailrace.jobs import handler as outcomes
from tailrace.jobs.engine.coalesce import Coalescer
from tailrace.jobs.frameworks.celery_tasks.running import Call

log = structlog.get_logger(__name__)

MOST_WAITING = 10_000
"""Events of a process that wait for the broker. Older ones are dropped."""
PACE_SECONDS = 0.1
LONGEST_VALUE, LONGEST_TRACEBACK = 1024, 8192
"""Characters: of arguments and exceptions, as with Celery, and of the end of a traceback."""
FLUSH_SECONDS = 1
"""How long a process waits for its last events before it ends."""
Waiting = tuple[Any, str, str, dict[str, Any]]
"""The app, the worker's name, the type of the event and its fields."""
_on = mmap.mmap(-1, 1)
"""Whether they are sent: a byte that a worker shares with its processes."""
_waiting: deque[Waiting] = deque(maxlen=MOST_WAITING)


@signals.worker_init.connect
def follow_worker(sender: Any, **kwargs: Any) -> None:
    """Send events while this worker does so of other tasks."""
    global _on
    from celery.worker.control import Panel

    _on = mmap.mmap(-1, 1)
    _on[0] = bool(getattr(sender, "task_events", False))
    for command in ("enable_events", "disable_events"):
        _follow(Panel.data, command)


def _follow(commands: Any, name: str) -> None:
    command = commands[name]

    def followed(state: Any, **kwargs: Any) -> Any:
        reply = command(state, **kwargs)
        if (dispatcher := state.consumer.event_dispatcher) is not None:
            _on[0] = not dispatcher.groups or "task" in dispatcher.groups
        return reply

    commands[name] = followed


def begun(call: Call, request: dict[str, Any]) -> None:
    if not _on[0]:
        return
    task = call.task
    _send(
        call, request, "task-received", name=task.name, root_id=request.get("root_id"),
        parent_id=request.get("parent_id"), retries=request["retries"],
        args=request.get("argsrepr") or _shown(request["args"]),
        kwargs=request.get("kwargsrepr") or _shown(request["kwargs"]),
        eta=request.get("eta"), expires=request.get("expires"),
    )  # fmt: skip
    _send(call, request, "task-started")


def succeeded(call: Call, request: dict[str, Any], result: str, seconds: float) -> None:
    if _on[0]:
        _send(call, request, "task-succeeded", result=result, runtime=seconds)


def raised(call: Call, request: dict[str, Any], error: BaseException) -> None:
    """Send the event of a call that ended with this error or outcome of its job."""
    if not _on[0]:
        return
    match error:
        case outcomes.Skip() | outcomes.Cancel():
            return  # replaced or ignored; one that is revoked has sent its own event
        case outcomes.Interrupted() | outcomes.LeaseLost():
            return  # it runs again, and is received again
        case outcomes.Snooze():
            _send(call, request, "task-rejected", requeue=True)
        case outcomes.Retry():
            cause = error.__cause__ or error
            _send(call, request, "task-retried", exception=_shown(cause), traceback=_text(cause))
        case _:
            _send(call, request, "task-failed", exception=_shown(error), traceback=_text(error))


def revoked(call: Call, request: dict[str, Any], **fields: Any) -> None:
    if _on[0]:
        _send(call, request, "task-revoked", **fields)


def _shown(value: Any) -> str:
    return saferepr(value, LONGEST_VALUE)[:LONGEST_VALUE]


def _text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-LONGEST_TRACEBACK:]


def _send(call: Call, request: dict[str, Any], type: str, **fields: Any) -> None:
    fields |= {"uuid": call.id, "timestamp": time.time()}
    _waiting.append((call.task.app, request["hostname"], type, fields))
    _sender.request(["events"])


def _send_waiting(items: Counter[str]) -> None:
    waiting = [_waiting.popleft() for _ in range(len(_waiting))]
    try:
        _publish(waiting)
    except Exception as error:  # kombu's transports raise their own classes
        text = f"{type(error).__name__}: {error}"
        log.warning("celery_tasks.events_not_sent", count=len(waiting), error=text)


def _publish(waiting: list[Waiting]) -> None:
    for (app, worker), events in groupby(waiting, key=itemgetter(0, 1)):
        with app.producer_pool.acquire(block=True) as producer, app.events.Dispatcher(
            producer.connection, worker, channel=producer.channel, buffer_group={"task"},
            buffer_limit=MOST_WAITING + 1,
        ) as dispatcher:  # fmt: skip
            for _app, _worker, type, fields in events:
                dispatcher.send(type, **fields)
            dispatcher.flush(errors=False)


_sender = Coalescer("task_events", _send_waiting, pace=PACE_SECONDS, flush_at_exit=False)
"""The thread of a process that sends them, several in one message."""


@signals.worker_process_shutdown.connect
def flush(**kwargs: Any) -> None:
    _sender.flush(FLUSH_SECONDS)
