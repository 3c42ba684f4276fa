"""Tasks of schedules: what a schedule stores of a call, and what beat leaves out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from celery import signals
from django.db import DatabaseError, InterfaceError

from tailrace.db import connections
from tailrace.db.query import query
from tailrace.jobs.frameworks.celery_tasks import handlers
from tailrace.jobs.frameworks.celery_tasks.message.message import Collected
from tailrace.jobs.frameworks.celery_tasks.message.payload import TaskPayload
from tailrace.jobs.frameworks.celery_tasks.publishing import insert
from tailrace.jobs.frameworks.celery_tasks.publishing.scope import Scope, collecting
from tailrace.jobs.frameworks.celery_tasks.publishing.silence import silent
from tailrace.jobs.frameworks.celery_tasks.running import Call
from tailrace.jobs.handler import ClaimedJob

OWNER = "celery beat"
"""The owner of the schedules that were moved from beat."""
_NO_HEADERS = (
    "args", "kwargs", "callbacks", "errbacks", "chain", "chord", "hostname", "is_eager",
    "reply_to", "correlation_id", "properties", "delivery_info",
)  # fmt: skip
"""What a request has beside the headers of its message."""


class CannotMove(ValueError):
    """A schedule of beat cannot be moved now."""


def call_of_schedule(
    app: Any, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Return the handler and the payload of a schedule that calls this task as beat does, with
    these options of `apply_async`; `expires` in seconds. Raises CannotMove, or NotJson."""
    if app.conf.task_always_eager:
        raise CannotMove("with task_always_eager, the call would run the task")
    scope = Scope(app)
    with collecting(app, scope), silent():
        app.tasks[task].apply_async(list(args), dict(kwargs), **options)
    [job] = scope.jobs
    message = job.message
    left_out = ("expires", "root_id")
    headers = {name: each for name, each in message.headers.items() if name not in left_out}
    payload = insert.payload_of(Collected(replace(message, id="", headers=headers)))
    handler = handlers.handler_of(message.task, message.queue)
    return handler.name, payload.model_dump() | {"expires_after": message.expires_after}


def give_id(job: ClaimedJob, payload: TaskPayload) -> None:
    """Give the call of a schedule's job an id, which is the same in each attempt."""
    payload.id = str(uuid5(NAMESPACE_URL, f"tailrace:{job.id}"))
    payload.headers.setdefault("root_id", payload.id)
    with connections.engine():
        insert.add_id(payload.id, job.id)


def announce(call: Call, request: dict[str, Any]) -> None:
    """Send the signals of the publication of a schedule's call, and use the headers that receivers
    add."""
    headers = {name: each for name, each in request.items() if name not in _NO_HEADERS}
    body = (request["args"], request["kwargs"], call.payload.embed)
    message = {"sender": call.task.name, "body": body, "headers": headers, "exchange": ""}
    message["routing_key"] = request["delivery_info"]["routing_key"]
    properties = request["properties"]
    signals.before_task_publish.send(**message, properties=properties, declare=[], retry_policy={})
    signals.after_task_publish.send(**message)
    request |= headers


def moved() -> set[str]:
    """Return the names of the schedules that were moved from beat."""
    sql = "SELECT name FROM tailrace_jobs_schedule WHERE owner = %(owner)s"
    return {name for (name,) in query(sql, owner=OWNER)}


@signals.beat_init.connect
def leave_out_moved(sender: Any, **kwargs: Any) -> None:
    """Let beat leave out entries of `beat_schedule` that were moved. The scheduler of
    django-celery-beat has just made rows of them."""
    scheduler = sender.scheduler
    durable = {
        name
        for name, entry in scheduler.schedule.items()
        if entry.task in handlers.declared and not entry.task.startswith("celery.")
    }
    if not durable:
        return
    try:
        names = moved() & durable
    except (DatabaseError, InterfaceError) as error:
        # Celery passes over other exceptions of receivers, and beat would send each slot again.
        raise SystemExit(
            f"beat cannot read which schedules have moved: {error}\n"
            "Start it again when the database answers and `migrate` has run."
        ) from error
    for name in names:
        del scheduler.schedule[name]
    if rows := getattr(scheduler, "Model", None):
        rows._default_manager.filter(name__in=names).update(enabled=False)
