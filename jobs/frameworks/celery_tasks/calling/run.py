"""Run the job of a task: Celery's own tracer calls the task, and its outcome becomes the job's."""

import json
import socket
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any

from celery import signals, states
from celery._state import get_current_task
from celery.app.task import Context
from celery.app.trace import trace_task
from celery.exceptions import Reject, Retry
from celery.exceptions import TimeLimitExceeded as CeleryTimeLimitExceeded
from celery.utils.time import maybe_iso8601, maybe_make_aware

from tailrace.db import connections
from tailrace.db.query import database_now, execute, query
from tailrace.db.sql.plans import probe
from tailrace.jobs import handler as outcomes
from tailrace.jobs.engine.inserting.new_job import InvalidJob
from tailrace.jobs.engine.run.verdict import RESULT_LIMIT
from tailrace.jobs.frameworks.celery_tasks import handlers, running, schedules, stamps
from tailrace.jobs.frameworks.celery_tasks.calling import events
from tailrace.jobs.frameworks.celery_tasks.calling.limits import Limits, Terminated
from tailrace.jobs.frameworks.celery_tasks.calling.revoked import watched
from tailrace.jobs.frameworks.celery_tasks.message.encoding import from_json
from tailrace.jobs.frameworks.celery_tasks.message.opaque import decoded, value_from_json
from tailrace.jobs.frameworks.celery_tasks.message.payload import TaskPayload
from tailrace.jobs.frameworks.celery_tasks.message.placeholders import filled_in, is_placeholder
from tailrace.jobs.frameworks.celery_tasks.publishing import insert
from tailrace.jobs.frameworks.celery_tasks.running import Call
from tailrace.jobs.handler import ClaimedJob, LeaseLost, Permanent, Skip
from tailrace.jobs.handler.handler import OWN_CLAIM
from tailrace.jobs.handler.parents import EDGES


class TaskLeft(Exception):
    """The task raised SystemExit, which must not end its worker."""


def run(task: Any, job: ClaimedJob) -> Any:
    """Call the task of this job, and return its result. Raises the outcome of the job, or the
    task's exception."""
    call = Call(task, job, job.payload)
    is_of_schedule = not call.id
    if is_of_schedule:
        schedules.give_id(job, call.payload)
    if job.attempt > 1 and (newer := _replaced_by(call)):
        raise Skip(f"replaced by job {newer}")
    payload = call.payload
    if payload.countdown and job.claim_no == 1:
        raise outcomes.Snooze("its countdown begins", seconds=payload.countdown)
    if payload.expires_after is not None:
        due_at = database_now() - timedelta(seconds=job.waited)
        expires = due_at + timedelta(seconds=payload.expires_after)
        payload.headers["expires"] = expires.isoformat()
    request = _request(call)
    if is_of_schedule and job.claim_no == 1:
        schedules.announce(call, request)
    if _is_expired(call):
        _announce_revoked(call, request, expired=True)
        raise outcomes.Cancel("expired before it began")
    if stamps.is_revoked(payload.headers):
        _announce_revoked(call, request)
        raise outcomes.Cancel("revoked by its stamps")
    events.begun(call, request)
    token = running.current.set(call)
    try:
        traced = _traced(call, request)
        result = _outcome(call, request, traced)
    except BaseException as error:
        events.raised(call, request, error)
        raise
    finally:
        running.current.reset(token)
    events.succeeded(call, request, traced.retstr, traced.runtime)
    return result


def _request(call: Call) -> dict[str, Any]:
    """Return the request, as Celery's worker makes it of a message."""
    payload, task, job = call.payload, call.task, call.job
    outer = getattr(get_current_task(), "request", None)
    headers, (args, kwargs, embed) = from_json(payload.headers), _decoded(task.app, payload)
    if any(map(is_placeholder, args)):
        args = filled_in(args, _results_of_parents(task.app, job))
    return {
        "retries": 0, "timelimit": [None, None], "lang": "py",
        **headers,
        **embed,
        "id": payload.id,
        "task": task.name,
        "args": args,
        "kwargs": kwargs,
        "hostname": getattr(outer, "hostname", None) or f"celery@{socket.gethostname()}",
        "is_eager": False,
        "reply_to": payload.reply_to,
        "correlation_id": payload.id,
        "properties": {
            **payload.properties, "correlation_id": payload.id, "reply_to": payload.reply_to
        },
        "delivery_info": {
            "exchange": "", "routing_key": job.handler.worker_queue, "priority": payload.priority,
            "redelivered": job.claim_no > 1 + call.retries + bool(payload.countdown),
        },
    }  # fmt: skip


def _decoded(app: Any, payload: TaskPayload) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Return the arguments, and the callbacks and the like."""
    own = payload.opaque
    if own is None:
        args, kwargs, embed = from_json([payload.args, payload.kwargs, payload.embed])
        return args, kwargs, embed
    try:
        return *decoded(app, own, payload.args), value_from_json(app, payload.embed)
    except Exception as error:  # of the project's own decoder
        name = f"{type(error).__module__}.{type(error).__qualname__}"
        text = f"its arguments cannot be decoded as {own['type']}: {name}"
        raise Permanent(text) from None


def _traced(call: Call, request: dict[str, Any]) -> Any:
    """Let Celery trace the task, within its time limits."""
    task, job = call.task, call.job
    hard, soft = request["timelimit"] or (None, None)
    limits = Limits(
        hard or task.time_limit, soft or task.soft_time_limit, job.handler.time_limit or 0
    )
    try:
        with ExitStack() as stack:
            stack.enter_context(limits.kept())
            stack.enter_context(watched(job.id, limits))
            return trace_task(
                task, call.id, request["args"], request["kwargs"], request,
                app=task.app, hostname=request["hostname"],
            )  # fmt: skip
    except Terminated:
        _announce_revoked(call, request, terminated=True, signum="SIGTERM")
        raise outcomes.CancelRequested("revoked while it ran") from None
    except outcomes.TimeLimitExceeded:
        _fail(call, request, CeleryTimeLimitExceeded(hard or task.time_limit))
    except SystemExit as error:
        _fail(call, request, TaskLeft(f"the task raised SystemExit: {error}"))


def _outcome(call: Call, request: dict[str, Any], traced: Any) -> Any:
    """Return the result of a call that has succeeded, or raise its outcome."""
    info = traced.info
    if info is None:
        if call.retry is not None:  # `self.retry(throw=False)`
            _retry(call, None)
        _store_children(call, request)
        return _stored_apart(call)
    state, error = info.state, info.retval
    if state == states.RETRY:
        _retry(call, error)
    if state == states.IGNORED:
        if call.replacement is not None:
            raise Skip(_replace(call))
        raise outcomes.Cancel(str(error) or "ignored by the task")
    if state == states.REJECTED:
        if error.requeue:
            raise outcomes.Snooze("rejected by the task, to run it again", seconds=0)
        _fail(call, request, error)
    call.job.is_last = call.job.is_logged = True  # by Celery's tracer
    raise _own(error)


def _own(error: BaseException) -> BaseException:
    """Return an error that fails the job. An outcome of handlers has no meaning in a task."""
    return Permanent(str(error)) if isinstance(error, outcomes.Outcome) else error


def _fail(call: Call, request: dict[str, Any], error: Exception) -> None:
    """Fail the call as Celery's main process does, where the tracer could not."""
    task, context = call.task, Context(request, called_directly=False)
    task.backend.mark_as_failure(call.id, error, request=context)
    if isinstance(error, Reject | TaskLeft):
        signals.task_failure.send(
            sender=task, task_id=call.id, exception=error, args=context.args,
            kwargs=context.kwargs, traceback=error.__traceback__, einfo=None,
        )  # fmt: skip
    call.job.is_last = True
    raise error


# --- Retry: the same job again ---

_RETRY = f"""
UPDATE tailrace_jobs_live SET payload = %(payload)s::jsonb, handler = %(handler)s,
  priority = %(priority)s
WHERE {OWN_CLAIM}
"""


def _retry(call: Call, error: BaseException | None) -> None:
    """Give the job the arguments and options of the retry, and raise Retry. Raises LeaseLost if
    another worker has claimed the job."""
    message, job = call.retry, call.job
    if message is None:  # `raise Retry()` without `self.retry()`: nothing was published
        raise outcomes.Cancel(f"the task raised {error!r} and did not call self.retry()")
    payload = TaskPayload.model_construct(
        id=call.id, args=message.args, kwargs=message.kwargs, opaque=message.opaque,
        headers=message.headers,
        embed=insert.embed_of(message), priority=message.priority, reply_to=message.reply_to,
        properties=message.properties, is_body=call.payload.is_body, returns=call.payload.returns,
    )  # fmt: skip
    with connections.engine():
        changed = connections.with_reconnect(
            lambda: execute(
                _RETRY,
                id=job.id,
                claim_no=job.claim_no,
                worker=job.worker,
                payload=payload.model_dump_json(),
                handler=handlers.handler_of(call.task, message.queue).name,
                priority=insert.priority_of(message),
            )
        )
    if not changed:
        raise LeaseLost("another worker has claimed the job")
    delay = message.delay
    if message.due_at is not None:
        delay = (message.due_at - database_now()).total_seconds()
    cause = error.exc if isinstance(error, Retry) and error.exc else error
    retry = outcomes.Retry(str(error or "retry"), after=max(0.0, delay), counted=False)
    raise retry from cause if isinstance(cause, BaseException) else None


# --- Replacement ---

_NEWEST = "SELECT job_id FROM tailrace_jobs_celerytask WHERE task_id = %(id)s"


def _replaced_by(call: Call) -> int | None:
    """Return the job that an earlier attempt of this one was replaced by."""
    rows = query(_NEWEST, id=call.id)
    newest = rows[0][0] if rows else None
    return newest if newest is not None and newest > call.job.id else None


def _replace(call: Call) -> str:
    """Insert the replacement; return the reason of the job's end. Raises Cancel if its flow was
    cancelled meanwhile."""
    collected: Sequence[Any] = call.replacement or ()
    try:
        with connections.atomic():
            insert.insert(collected, lambda: call.task.name)
            [(job,)] = query(_NEWEST, id=call.id)
    except InvalidJob as error:
        raise outcomes.Cancel(str(error)) from error
    return f"replaced by job {job}"


# --- Results ---

_PARENTS = f"""
SELECT p.payload->>'id', p.result::text,
  CASE WHEN t.state = '{states.SUCCESS}' THEN t.meta::text END
FROM ({EDGES}) edge JOIN tailrace_jobs_job p ON {probe("p.id", "edge.parent_id")}
LEFT JOIN tailrace_jobs_celerytask t ON t.job_id = p.id
ORDER BY edge.position, p.id
"""


def _results_of_parents(app: Any, job: ClaimedJob) -> dict[str, Any]:
    """Return the results of the tasks that this job waited for, by their ids, in the order of the
    flow. A task that was replaced has the result of its replacement."""
    results: dict[str, Any] = {}
    with connections.engine():
        rows = connections.with_reconnect(lambda: query(_PARENTS, job=job.id))
    for id, result, meta in rows:
        if result is None and meta is not None:
            result = json.dumps(json.loads(meta)["result"])
        results[id] = None if result is None else value_from_json(app, json.loads(result))
    return results


_APART = f"""
UPDATE tailrace_jobs_celerytask SET state = '{states.SUCCESS}', meta = %(meta)s::jsonb
WHERE task_id = %(task)s AND job_id = %(id)s
"""


def _stored_apart(call: Call) -> Any:
    """Return the result to store with the job. A result that is too long for that is stored with
    the task's id."""
    text = json.dumps(call.result)
    if len(text) <= RESULT_LIMIT:
        return call.result
    with connections.engine():
        meta = json.dumps({"result": call.result})
        execute(_APART, task=call.id, id=call.job.id, meta=meta)
    return None


_CHILDREN = """
UPDATE tailrace_jobs_celerytask SET children = %(children)s::jsonb || coalesce(children, '[]')
WHERE task_id = %(task)s
"""


def _store_children(call: Call, request: dict[str, Any]) -> None:
    if call.children:
        with connections.engine():
            execute(_CHILDREN, task=call.id, children=json.dumps(call.children))


# --- Revoked ---


def _is_expired(call: Call) -> bool:
    expires = call.payload.headers.get("expires")
    if not expires:
        return False
    at: datetime = maybe_make_aware(maybe_iso8601(expires), call.task.app.timezone)
    return database_now() > at


def _announce_revoked(
    call: Call,
    request: dict[str, Any],
    *,
    expired: bool = False,
    terminated: bool = False,
    signum: str | None = None,
) -> None:
    context = Context(request, called_directly=False)
    how = {"terminated": terminated, "signum": signum, "expired": expired}
    signals.task_revoked.send(sender=call.task, request=context, **how)
    events.revoked(call, request, **how)
