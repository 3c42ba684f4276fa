"""Assign failed jobs to groups: jobs that failed outside their handler, and old jobs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime

import structlog
from django.db import DatabaseError

from tailrace.db import clock, connections
from tailrace.db.query import execute, query
from tailrace.jobs.engine.failures.fingerprint import Fingerprint, fingerprint, frame_in
from tailrace.jobs.engine.failures.record import count

log = structlog.get_logger(__name__)

WORKER_LOST = "WorkerLost"
"""The error class of jobs whose worker was lost."""
BATCH = 500

_UNGROUPED = f"""
SELECT j.id, j.handler, coalesce(j.finished_at, {clock.NOW}), j.error, coalesce(a.outcome, ''),
       coalesce(a.error_class, ''), coalesce(a.traceback, '')
FROM tailrace_jobs_live j LEFT JOIN LATERAL (
  SELECT outcome, error_class, traceback FROM tailrace_jobs_attempt WHERE job_id = j.id
  ORDER BY claim_no DESC LIMIT 1
) a ON true
WHERE j.id = ANY(%(ids)s) AND j.state = 'failed' AND j.failure_group_id IS NULL
ORDER BY j.id LIMIT %(limit)s FOR NO KEY UPDATE OF j SKIP LOCKED
"""
_GROUP = """
UPDATE tailrace_jobs_live j SET failure_group_id = v.failure_group
FROM unnest(%(id)s::bigint[], %(failure_group)s::bigint[]) AS v (id, failure_group)
WHERE j.id = v.id
"""


def group(ids: Sequence[int]) -> int:
    """Assign these failed jobs to groups and count them there, unless they have a group; return how
    many were assigned. In the caller's transaction."""
    changed = 0
    for start in range(0, len(ids), BATCH):
        rows = query(_UNGROUPED, ids=list(ids[start : start + BATCH]), limit=BATCH)
        if not rows:
            continue
        groups = {id: _fingerprint(*row) for id, *row in rows}
        times = _times((groups[id], finished_at) for id, _handler, finished_at, *_ in rows)
        count(Counter(groups.values()), times)
        changed += execute(
            _GROUP, id=list(groups), failure_group=[group.id for group in groups.values()]
        )
    return changed


def group_or_leave(ids: Sequence[int]) -> None:
    """Assign these failed jobs to groups. Database errors are logged, e.g. if another transaction
    locks a group: the sweeper assigns the jobs later."""
    if not ids:
        return
    try:
        with connections.atomic():
            group(ids)
    except DatabaseError as error:
        log.warning("failures.not_grouped", jobs=len(ids), error=str(error).strip())


def _fingerprint(
    handler: str, _finished_at: datetime, error: str, outcome: str, error_class: str, trace: str
) -> Fingerprint:
    name = WORKER_LOST if outcome == "lost" else error_class
    return fingerprint(handler, name, error, frame_in(trace))


def _times(
    failures: Iterable[tuple[Fingerprint, datetime]],
) -> dict[Fingerprint, tuple[datetime, datetime]]:
    times: dict[Fingerprint, tuple[datetime, datetime]] = {}
    for group, at in failures:
        first, last = times.get(group, (at, at))
        times[group] = min(first, at), max(last, at)
    return times
