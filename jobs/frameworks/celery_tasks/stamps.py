"""Revoke tasks by their stamps: what is revoked is stored, and each stamped call looks for it when
it begins."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from celery import states
from celery.utils.functional import maybe_list

from tailrace.db import connections
from tailrace.db.query import execute, query
from tailrace.db.sql.arrays import text_array
from tailrace.jobs.engine import registry
from tailrace.jobs.frameworks.celery_tasks.handlers import CeleryTaskHandler

# As rows of groups, they are deleted after some days.
_STORE = f"""
INSERT INTO tailrace_jobs_celerytask (task_id, state)
SELECT id, '{states.REVOKED}' FROM unnest(%(ids)s::text[]) id
ON CONFLICT (task_id) DO UPDATE SET created_at = excluded.created_at
"""
_STORED = "SELECT 1 FROM tailrace_jobs_celerytask WHERE task_id = ANY(%(ids)s::text[]) LIMIT 1"
_RUNNING = """
SELECT payload->>'id', (payload->'headers'->'stamps')::text FROM tailrace_jobs_live
WHERE state = 'running' AND handler = ANY(%(handlers)s::text[]) AND payload->'headers' ? 'stamps'
"""


def store_revoked(stamps: Any) -> None:
    """Let calls with one of these stamps be cancelled when they begin. `stamps`: the values by
    their headers, or texts such as `header=value`."""
    execute(_STORE, ids=text_array(_ids(_by_header(stamps))))


def is_revoked(headers: Mapping[str, Any]) -> bool:
    """Whether a call with these headers has a revoked stamp."""
    ids = _ids(headers.get("stamps") or {})
    if not ids:
        return False
    with connections.engine():
        return bool(connections.with_reconnect(lambda: query(_STORED, ids=text_array(ids))))


def running_with(stamps: Any) -> Iterator[str]:
    """Yield the ids of running tasks with one of these stamps."""
    revoked = _ids(_by_header(stamps))
    handlers = [
        name
        for name, handler in registry.all_handlers().items()
        if isinstance(handler, CeleryTaskHandler)
    ]
    for id, of_call in query(_RUNNING, handlers=text_array(handlers)):
        if revoked & _ids(json.loads(of_call)):
            yield id


def _by_header(stamps: Any) -> Mapping[str, Any]:
    if isinstance(stamps, Mapping):
        return stamps
    return dict(each.split("=", 1) for each in stamps)


def _ids(stamps: Mapping[str, Any]) -> set[str]:
    return {
        f"stamp:{header}={value}"
        for header, values in stamps.items()
        for value in maybe_list(values) or []
    }
