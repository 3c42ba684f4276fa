"""Which tasks can move as they are, and why others cannot."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from celery import Celery
from celery.exceptions import QueueNotFound

from tailrace.jobs.engine import registry
from tailrace.jobs.frameworks.celery_tasks.message.opaque import UNSAFE, is_accepted
from tailrace.jobs.frameworks.celery_tasks.task import Task
from tailrace.jobs.platform.adopting.arguments import not_json
from tailrace.jobs.platform.adopting.waiting import waits

OURS, OF_CELERY = "tailrace.", "celery."


class Verdict(StrEnum):
    MOVES = "moves"
    CHANGE_FIRST = "change first"
    STAYS = "stays"
    """It goes on as a plain task of Celery, whatever `task_cls` is."""
    DURABLE = "durable"


@dataclass(frozen=True, slots=True)
class TaskReport:
    name: str
    queue: str
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    """Why it needs a change, or stays."""
    notes: tuple[str, ...] = ()


def of_app(app: Celery) -> Iterator[TaskReport]:
    """Yield a report on each task of the project: not on Celery's own, nor on our handlers'."""
    for name, task in list(app.tasks.items()):
        if name.startswith((OURS, OF_CELERY)):
            continue
        if isinstance(task, Task) or registry.find(name) is None:
            yield _of_task(app, task)


def queue_of(app: Celery, task: Any, **options: Any) -> str:
    """Return the name of the queue that a call with these options is routed to; "" if its routes
    name a queue that the settings lack."""
    given = {"queue": getattr(task, "queue", None)} | options
    given = {name: value for name, value in given.items() if value is not None}
    try:
        queue = app.amqp.router.route(given, task.name).get("queue")
    except QueueNotFound:
        return ""
    name = getattr(queue, "name", queue) or app.conf.task_default_queue
    return str(name)


def _of_task(app: Celery, task: Any) -> TaskReport:
    queue = queue_of(app, task)
    durable = isinstance(task, Task)
    if not durable and (base := _own_base(app, task)):
        reason = (
            f"its class {base} derives from celery.Task: derive it from tailrace.celery.Task to"
            " make its tasks durable"
        )
        return TaskReport(task.name, queue, Verdict.STAYS, (reason,))
    reasons = [*_serializer(task), *waits(task)]
    if not queue:
        reasons.append("its route names a queue that task_queues lacks")
    if "@" in task.name:
        reasons.append("its name has an @, which separates a task from its queue on the board")
    verdict = Verdict.DURABLE if durable else Verdict.MOVES
    if reasons:
        verdict = Verdict.CHANGE_FIRST
    return TaskReport(task.name, queue, verdict, tuple(reasons), tuple(_notes(task)))


def _own_base(app: Celery, task: Any) -> str:
    """Return the class because of which `task_cls` of the app does not apply to this task."""
    if isinstance(task, app.Task):
        return ""
    base = _classes(task)[0]
    return f"{base.__module__}.{base.__qualname__}"


def _classes(task: Any) -> tuple[type, ...]:
    """Return the classes of a task, except the class that Celery makes for each function."""
    classes = type(task).__mro__
    return classes[1:] if "_decorated" in vars(classes[0]) else classes


def _serializer(task: Any) -> Iterator[str]:
    serializer = task.serializer or "json"
    if serializer == "json" or is_accepted(task.app, serializer):
        return
    if serializer in UNSAFE:
        yield (
            f"its serializer is {serializer!r}, which is refused: set serializer='json', and pass"
            " ids, texts and numbers"
        )
    else:
        yield (
            f"its serializer is {serializer!r}; arguments of durable tasks are JSON, or in a"
            " serializer in accept_content"
        )
    for parameter in not_json(task):
        yield f"{parameter}, which JSON cannot carry"


def _notes(task: Any) -> Iterator[str]:
    """Yield what the team should know of a task that moves."""
    if (task.serializer or "json") == "json":
        for parameter in not_json(task):
            yield f"{parameter}: calls that pass one are refused, as they are today"
    for name in ("acks_late", "reject_on_worker_lost"):
        if getattr(task, name) and not task.app.conf[f"task_{name}"]:
            yield f"{name} has no meaning: a job of a lost worker is always run again"
