"""Insert the jobs of calls, with the rows of their ids, in the caller's transaction."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from celery.utils.functional import maybe_list

from tailrace.db import connections, locks
from tailrace.db.query import execute, prepared, query
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.jobs.engine.inserting.insert_sql import INSERT_NEW
from tailrace.jobs.engine.inserting.new_job import NewJob, columns_of
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.enqueue import due_jobs
from tailrace.jobs.flows import MAX_JOBS, FlowJob, NewFlow, RunningFlow
from tailrace.jobs.flows.graph import Graph
from tailrace.jobs.frameworks.celery_tasks import handlers, running
from tailrace.jobs.frameworks.celery_tasks.message.encoding import NOT_JSON, arguments_to_json
from tailrace.jobs.frameworks.celery_tasks.message.message import Collected, Message
from tailrace.jobs.frameworks.celery_tasks.message.opaque import serializer_of, value_to_json
from tailrace.jobs.frameworks.celery_tasks.message.payload import TaskPayload
from tailrace.jobs.handler import ClaimedJob

# An id that is used again refers to the newest job.
_CONFLICT = """
ON CONFLICT (task_id) DO UPDATE SET job_id = excluded.job_id, state = '', meta = NULL,
  children = excluded.children, created_at = excluded.created_at"""
_ROWS = f"""
INSERT INTO tailrace_jobs_celerytask (task_id, job_id, children)
SELECT * FROM unnest(%(task_id)s::text[], %(job_id)s::bigint[], %(children)s::jsonb[])
{_CONFLICT}
"""
_ONE = f"""
WITH job AS ({INSERT_NEW})
INSERT INTO tailrace_jobs_celerytask (task_id, job_id) SELECT %(task_id)s::text, id FROM job
{_CONFLICT}
RETURNING job_id
"""
_ADD_ID = """
INSERT INTO tailrace_jobs_celerytask (task_id, job_id) VALUES (%(task_id)s, %(job)s)
ON CONFLICT (task_id) DO NOTHING
"""
_KNOWN = """
SELECT task_id FROM tailrace_jobs_celerytask WHERE task_id = ANY(%(ids)s::text[])
"""
BATCH = 5_000
_SIGNATURES = ("errbacks", "callbacks", "chain")
"""What a message embeds as lists of signatures."""


def insert(collected: Sequence[Collected], name: Callable[[], str]) -> None:
    """Insert these jobs: a single one, or several as one flow with this name. If they belong to the
    chord of the running job, they join its flow."""
    if (call := running.current.get()) is not None:
        collected = _without_known(collected, call)
        joining = call.joining(collected)
        for index in joining:
            _inherit(collected[index], call)
        if joining and insert_into_flow(collected, call, joining):
            return
    if not collected:
        return
    if len(collected) == 1:
        _insert_one(collected[0])
    elif len(collected) > MAX_JOBS and not any(job.parents for job in collected):
        for start in range(0, len(collected), MAX_JOBS):
            insert(collected[start : start + MAX_JOBS], name)
    else:
        _insert_flow(NewFlow(name()), collected, Counter(), "", set())


def insert_into_flow(collected: Sequence[Collected], call: running.Call, joining: set[int]) -> bool:
    """Add the jobs to the flow of the running job, if it belongs to one; return whether it does.
    What waits for the running job waits for those at the indexes `joining`, too."""
    if not _has_flow(call.job):
        return False
    retries = f"-retry{call.payload.headers.get('retries')}" if call.retries else ""
    _insert_flow(RunningFlow(call.job), collected, call.names, retries, joining)
    return True


def _inherit(job: Collected, call: "running.Call") -> None:
    """Let the result of a job that replaces the running one be stored as the result of that one."""
    job.returns |= call.payload.returns
    ignored = call.payload.headers.get("ignore_result")
    if job.message.id == call.id and ignored is not None:
        job.message.headers["ignore_result"] = ignored


def _has_flow(job: ClaimedJob) -> bool:
    with connections.engine():
        rows = query("SELECT flow_id FROM tailrace_jobs_live WHERE id = %(id)s", id=job.id)
    return bool(rows) and rows[0][0] is not None


def _without_known(collected: Sequence[Collected], call: running.Call) -> list[Collected]:
    """Leave out the calls of error callbacks that an earlier attempt has published."""
    ids = [job.message.id for job in collected if job.message.id in call.once]
    known = {id for (id,) in query(_KNOWN, ids=text_array(ids))} if ids else set()
    return [job for job in collected if job.message.id not in known]


def _insert_one(job: Collected) -> None:
    message = job.message
    handler = handlers.handler_of(message.task, message.queue)
    new = NewJob(
        handler.name,
        payload=payload_of(job).model_dump_json(exclude_defaults=True),
        priority=priority_of(message),
        due_at=message.due_at,
        delay=message.delay,
    )

    def create() -> None:
        prepared(_ONE, task_id=message.id, **columns_of([new]))
        wake.on_commit({each.handler for each in due_jobs([new])})

    locks.in_transaction(create, one_statement=True)
    _note_published({message.id})


def _insert_flow(
    flow: Graph,
    collected: Sequence[Collected],
    names: Counter[str],
    suffix: str,
    joining: set[int],
) -> None:
    jobs: dict[Any, FlowJob] = {}
    for index, each in enumerate(collected):
        message = each.message
        handler = handlers.handler_of(message.task, message.queue)
        short = message.task.name.rpartition(".")[2][:150].replace("@", "-")
        names[short] += 1
        number = f"-{names[short]}" if names[short] > 1 else ""
        later = bool(each.parents or each.after_failure_of)
        options: dict[str, Any] = {"joins": True} if index in joining else {}
        jobs[each] = flow.add(
            handler.name,
            payload_of(each),
            name=f"{short}{number}{suffix}",
            priority=priority_of(message),
            due_at=message.due_at,
            delay=0.0 if later else message.delay,
            after=[jobs[parent] for parent in each.parents],
            after_failure=[jobs[parent] for parent in each.after_failure_of],
            **options,
        )
    assert isinstance(flow, NewFlow | RunningFlow)  # noqa: S101
    with connections.atomic():
        flow.enqueue()
        insert_rows([(each, job.id) for each, job in jobs.items()])
    _note_published({each.message.id for each in jobs})


class _Published:
    """The ids of tasks that were called in a transaction, until its commit."""

    def __init__(self, ids: set[str]) -> None:
        self.ids = ids

    def __call__(self) -> None:
        pass


def uncommitted() -> set[str]:
    """Return the ids of tasks that were called in the open transaction: no worker sees their jobs
    yet."""
    calls = (call for _sids, call, *_ in connections.current().run_on_commit)
    return {id for call in calls if isinstance(call, _Published) for id in call.ids}


def _note_published(ids: set[str]) -> None:
    connection = connections.current()
    if connection.in_atomic_block:
        connection.on_commit(_Published(ids))


def insert_rows(jobs: Sequence[tuple[Collected, int | None]]) -> None:
    for start in range(0, len(jobs), BATCH):
        # The last job of an id counts; a statement must not write a row twice.
        rows = {each.message.id: (each, id) for each, id in jobs[start : start + BATCH]}
        execute(
            _ROWS,
            task_id=text_array(rows),
            job_id=number_array(id for _each, id in rows.values()),
            children=text_array(
                json.dumps(each.children) if each.children else None for each, _id in rows.values()
            ),
        )


def add_id(task_id: str, job: int) -> None:
    """Let the result of this task be that of the job, if it is not yet."""
    execute(_ADD_ID, task_id=task_id, job=job)


def payload_of(job: Collected) -> TaskPayload:
    """Return the payload. Celery calls what follows a task when that has ended, and its countdown
    and its expiry begin then."""
    message, headers, later = job.message, job.message.headers, bool(job.parents)
    expires_after = message.expires_after if later else None
    if expires_after is not None:
        headers = {name: each for name, each in headers.items() if name != "expires"}
    return TaskPayload.model_construct(
        id=message.id,
        args=message.args,
        kwargs=message.kwargs,
        opaque=message.opaque,
        headers=headers,
        countdown=message.delay if later else 0.0,
        expires_after=expires_after,
        embed=embed_of(message),
        priority=message.priority,
        reply_to=message.reply_to,
        properties=message.properties,
        is_body=job.is_body,
        returns=job.returns,
    )


def embed_of(message: Message) -> dict[str, Any]:
    serializer = serializer_of(message.opaque)
    given = {key: each for key, each in message.embed.items() if each}
    try:
        embed: dict[str, Any] = value_to_json(message.task.app, serializer, given)
    except NOT_JSON:
        for signature in (
            each for name in _SIGNATURES for each in maybe_list(given.get(name)) or []
        ):
            arguments_to_json(signature["task"], signature["args"], signature["kwargs"])
        raise
    return embed


def priority_of(message: Message) -> int:
    return handlers.priority_of(message.task.app, message.priority)
