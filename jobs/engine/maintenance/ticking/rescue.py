"""Rescue running jobs whose worker was lost, since their lease expired or their process died: they
run again or fail."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tailrace.db import clock, connections
from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import bookmarks
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.failures.fill_in import WORKER_LOST, group_or_leave
from tailrace.jobs.engine.failures.fingerprint import fingerprint
from tailrace.jobs.engine.failures.record import silenced
from tailrace.jobs.engine.maintenance.ticking import losses
from tailrace.jobs.engine.settling.settle_sql import MERGED, record_attempts, taken_by
from tailrace.jobs.engine.waking import dependents
from tailrace.jobs.runtime.report import Failure, report_later

LOST = "its worker was lost: the lease expired while it ran"
PROCESS_DIED = "its worker process {how} while it ran"
"""`how` is `was killed by signal 9 (SIGKILL)`, `ended with exit status 1` or WITH_WORKER."""
WITH_WORKER = "ended together with its worker"
NOT_BEGUN = "its worker was lost before the job began, or soon after; this counts as no attempt"

_LOST_ATTEMPTS = """
    SELECT id, claim_no, started_at, call_after, NULL::real AS call_took, 'lost' AS outcome,
           '' AS error_class,
           CASE WHEN begun THEN %(lost)s ELSE %(not_begun)s END AS message, '' AS traceback, worker
    FROM rescued"""

# The attempt was counted when the job was claimed, so a job that kills its workers ends in
# `failed`; a job that had not begun gets its attempt back. Rescued jobs are marked, to be claimed
# on their own. SKIP LOCKED skips jobs that are being settled now. Of several jobs with the same
# unique key, one is queued again; the next rescue merges the others into it. All running jobs are
# read, because no index has the leases; ORDER BY matches the index of running jobs. The lease was
# the wait of a job whose lease expired. A job whose process died waits for its backoff, unless the
# whole worker was lost for the first time in the job.
_RESCUE = f"""
WITH expired AS MATERIALIZED (
  SELECT j.id, j.handler, j.unique_key, h.max_attempts, j.isolate AS was_lost,
         j.begun AND coalesce(j.attempt >= h.max_attempts, false) AS exhausted,
         CASE WHEN j.begun AND %(process)s::text IS NOT NULL
           AND (j.isolate OR NOT %(at_once)s) THEN coalesce(
           h.backoff[least(greatest(j.attempt, 1), array_length(h.backoff, 1))]
           * (1 + h.jitter * (2 * random() - 1)), 0) END AS delay
  FROM tailrace_jobs_live j
  LEFT JOIN (
    SELECT name, max_attempts, string_to_array(backoff, ' ')::float8[] AS backoff, jitter
    FROM unnest(%(handlers)s::text[], %(max_attempts)s::int[], %(backoffs)s::text[],
      %(jitters)s::float8[]) AS each (name, max_attempts, backoff, jitter)
  ) h ON h.name = split_part(j.handler, '@', 1)
  WHERE j.state = 'running' AND CASE WHEN %(process)s::text IS NULL
      THEN j.lease_until < {clock.NOW} AND (
        h.name IS NOT NULL OR j.lease_until < {clock.NOW} - interval '1 hour')
      ELSE starts_with(j.worker, %(process)s) END
    AND (%(ids)s::bigint[] IS NULL OR j.id = ANY(%(ids)s))
  ORDER BY j.handler, j.lane LIMIT %(limit)s FOR UPDATE OF j SKIP LOCKED
),
chosen AS (
  SELECT DISTINCT ON (handler, unique_key, CASE WHEN unique_key IS NULL THEN id END) *
  FROM expired ORDER BY handler, unique_key, CASE WHEN unique_key IS NULL THEN id END, id
),
rescued AS (
  UPDATE tailrace_jobs_live j
  SET state = CASE
        WHEN j.cancel_requested THEN 'cancelled'
        WHEN e.exhausted THEN 'failed'
        WHEN taken.by IS NOT NULL THEN 'skipped'
        ELSE 'pending' END,
      error = CASE
        WHEN j.cancel_requested THEN 'cancelled while running'
        WHEN NOT e.exhausted AND taken.by IS NOT NULL THEN {MERGED}
        WHEN j.begun THEN %(lost)s
        ELSE %(not_begun)s END,
      finished_at = CASE
        WHEN j.cancel_requested OR e.exhausted OR taken.by IS NOT NULL THEN {clock.NOW} END,
      due_at = CASE WHEN e.delay IS NULL THEN j.due_at
        ELSE {clock.NOW} + make_interval(secs => e.delay) END,
      attempt = j.attempt - (NOT j.begun)::int, isolate = true, lease_until = NULL
  FROM chosen e, {taken_by("e")}
  WHERE j.id = e.id AND j.state = 'running'
    AND (j.lease_until < {clock.NOW} OR starts_with(j.worker, %(process)s))
  RETURNING j.id, e.was_lost, j.handler, j.state, j.claim_no, j.started_at, j.call_after, j.worker,
            j.event_id, j.begun, j.routing_key, j.attempt,
            coalesce(e.max_attempts, j.attempt) AS max_attempts
),
tried AS ({record_attempts(_LOST_ATTEMPTS)})
-- The columns in _REPORTED, then the others.
SELECT r.handler, r.id, r.event_id, coalesce(e.type, ''), r.routing_key, r.attempt,
       r.max_attempts, r.claim_no, r.begun, r.was_lost, r.state
FROM rescued r LEFT JOIN tailrace_events_event e ON e.id = r.event_id
"""
bookmark = bookmarks.Bookmark()
"""When this process checks again: while a held snapshot keeps the index entries of all jobs that
ran, checks are slow, and are made only every LONGEST_PAUSE."""
_REPORTED = (
    "handler", "job_id", "event_id", "event_type", "routing_key", "attempt", "max_attempts",
    "claim_no",
)  # fmt: skip
"""The first columns of a rescued job, by their names in Failure."""
NO_LIMIT = 1_000_000
"""A process claims far fewer jobs."""


def rescue(limit: int = 1000, ids: Sequence[int] | None = None) -> int:
    """Rescue jobs with expired leases, all or only the jobs `ids`; return how many. The tick wakes
    their queues. Another thread reports the failures after the commit, so that reporters delay
    neither the tick nor a sweep that holds locks."""
    if ids is None and bookmark.ages() is not None:
        return 0
    began = time.monotonic()
    rows = _rescue(limit, ids, None, LOST)
    if ids is None:
        bookmark.scanned(time.monotonic() - began, full=True)
    _after(rows, LOST)
    losses.record(_lost_again(rows), LOST)
    return len(rows)


def rescue_of_process(process: str, how: str, *, blamed: bool = True) -> int:
    """Rescue the jobs of a process that has died; return how many. `process` is the beginning of
    the names of its claims, `how` see PROCESS_DIED. If only one handler ran, it is `blamed`: the
    verdict names a handler at its second loss."""
    lost = PROCESS_DIED.format(how=how)
    rows = _rescue(NO_LIMIT, None, process, lost)
    _after(rows, lost)
    if blamed:
        ran = {handler: id for handler, id, *_, begun, _again, _state in rows if begun}
        ran = ran or {handler: id for handler, id, *_rest in rows}
        losses.record(ran if len(ran) == 1 else _lost_again(rows), lost, at_once=len(ran) > 1)
    return len(rows)


def rescue_of_lost_worker(process: str) -> int:
    """Rescue the jobs of a process that ended together with its worker; return how many. A job that
    was not lost before runs again at once: the reason is probably not the job."""
    lost = PROCESS_DIED.format(how=WITH_WORKER)
    rows = _rescue(NO_LIMIT, None, process, lost, at_once=True)
    _after(rows, lost)
    losses.record(_lost_again(rows), lost)
    return len(rows)


def _rescue(
    limit: int, ids: Sequence[int] | None, process: str | None, lost: str, at_once: bool = False
) -> list[tuple[Any, ...]]:
    handlers = registry.all_handlers()
    backoffs = [handler.backoff for handler in handlers.values()]
    return query(
        _RESCUE,
        handlers=list(handlers),
        max_attempts=[handler.max_attempts for handler in handlers.values()],
        backoffs=[" ".join(map(str, backoff.seconds)) for backoff in backoffs],
        jitters=[float(backoff.jitter) for backoff in backoffs],
        limit=limit,
        ids=None if ids is None else list(ids),
        process=process,
        at_once=at_once,
        lost=lost,
        not_begun=NOT_BEGUN,
    )


def _lost_again(rows: Iterable[tuple[Any, ...]]) -> dict[str, int]:
    """Return the jobs that were lost before, by handler."""
    return {handler: id for handler, id, *_, begun, again, _state in rows if begun and again}


def _after(rows: list[tuple[Any, ...]], lost: str) -> None:
    """Decide the jobs that wait for the rescued ones; report and count the losses."""
    if finished := [id for _handler, id, *_, state in rows if state != "pending"]:
        dependents.release(finished)
    group_or_leave([id for _handler, id, *_, state in rows if state == "failed"])
    if rows:
        names = Counter(handler for handler, *_rest in rows)
        silenced_handlers = _silenced_handlers(names, lost)
        failures = [_failure(row, lost, row[0] in silenced_handlers) for row in rows]
        connections.on_commit(report_later, failures)
        connections.on_commit(totals.lost, names)


def _silenced_handlers(handlers: Iterable[str], lost: str) -> set[str]:
    """Return the handlers whose failures by a lost worker are silenced."""
    groups = {handler: fingerprint(handler, WORKER_LOST, lost, "") for handler in handlers}
    ids = silenced(groups.values())
    return {handler for handler, group in groups.items() if group.id in ids}


def _failure(row: tuple[Any, ...], lost: str, is_silenced: bool) -> Failure:
    *columns, _begun, _was_lost, state = row
    job = dict(zip(_REPORTED, columns, strict=True))
    return Failure(
        **job, final=state == "failed", retry_in=0.0, error=lost, error_class=WORKER_LOST,
        silenced=is_silenced,
    )  # fmt: skip
