"""`celery inspect active`, `reserved` and `query_task`, also for tasks that run as jobs: a worker
answers for the calls that its processes hold."""

import json
import os
from collections.abc import Callable
from datetime import datetime
from typing import Any

import structlog
from celery import signals
from django.db import Error

from tailrace.db import connections
from tailrace.db.query import query
from tailrace.db.sql.arrays import text_array
from tailrace.jobs.engine.claiming.claim import process_name
from tailrace.jobs.frameworks.celery_tasks import handlers

log = structlog.get_logger(__name__)

MOST = 1000
"""Calls in an answer."""
_HELD = """
SELECT j.handler, j.payload, j.begun, j.started_at, split_part(j.worker, ':', 2)::int
FROM tailrace_jobs_live j
WHERE j.state = 'running' AND EXISTS (
  SELECT FROM unnest(%(processes)s::text[]) name WHERE starts_with(j.worker, name))
ORDER BY j.id LIMIT %(most)s
"""
ACTIVE, RESERVED = "active", "reserved"
Call = tuple[str, dict[str, Any]]
"""Whether a call is active or reserved, and what Celery's answers show of it."""


@signals.worker_init.connect
def add_to_commands(**kwargs: Any) -> None:
    from celery.worker.control import Panel

    for name in (ACTIVE, RESERVED):
        _extend(Panel.data, name, lambda reply, calls, name=name, **_arguments: [
            *reply, *(info for state, info in calls if state == name)
        ])  # fmt: skip
    _extend(Panel.data, "query_task", _with_queried)


def _with_queried(reply: Any, calls: list[Call], ids: Any, **arguments: Any) -> Any:
    wanted = {ids} if isinstance(ids, str) else set(ids or ())
    return reply | {info["id"]: (state, info) for state, info in calls if info["id"] in wanted}


def _extend(commands: Any, name: str, extended: Callable[..., Any]) -> None:
    command = commands[name]

    def answer(state: Any, **arguments: Any) -> Any:
        return extended(command(state, **arguments), _held_by(state), **arguments)

    commands[name] = answer


def _held_by(state: Any) -> list[Call]:
    """Return the calls that the processes of this worker hold. Without an answer of the database
    there are none: the command still shows other tasks."""
    try:
        with connections.engine():
            try:
                names = map(process_name, _pids(state))
                rows = query(_HELD, processes=text_array(names), most=MOST)
            finally:  # a process that is forked later would share it
                connections.current().close()
    except Error as error:
        log.warning("celery_tasks.not_inspected", error=str(error).strip())
        return []
    return [call for row in rows if (call := _call(state.hostname, *row)) is not None]


def _pids(state: Any) -> list[int]:
    pool = getattr(state.consumer.pool, "_pool", None)
    return [os.getpid(), *(each.pid for each in getattr(pool, "_pool", None) or [])]


def _call(
    node: str, handler: str, stored: str, begun: bool, since: datetime, pid: int
) -> Call | None:
    name, _at, queue = handler.partition("@")
    if (cls := handlers.declared.get(name)) is None:
        return None
    payload = json.loads(stored)
    headers = payload.get("headers") or {}
    return ACTIVE if begun else RESERVED, {
        "id": payload["id"],
        "name": cls.task_name,
        "args": headers.get("argsrepr") or payload.get("args") or [],
        "kwargs": headers.get("kwargsrepr") or payload.get("kwargs") or {},
        "type": cls.task_name,
        "hostname": node,
        "time_start": since.timestamp() if begun else None,
        "acknowledged": True,
        "delivery_info": {
            "exchange": "",
            "routing_key": queue or handlers.routed_queue(cls.app, cls.task_name),
            "priority": payload.get("priority"),
            "redelivered": None,
        },
        "worker_pid": pid,
    }
