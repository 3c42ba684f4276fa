"""Decide the jobs that wait for a job which has ended.

A waiting job refers by `after_id` to one unfinished parent, and is decided when that one ends. If
it has other parents (see `Dependency`) and one of them is unfinished, it waits for that one. So a
parent for which no job waits just now costs nothing when it ends, and no row is written by all
parents of a job. Otherwise the job becomes pending if its parents ended as it needs: each parent
whose success it needs has succeeded, and, if it waits for failures, at least one of these parents
has failed. If not, it is cancelled, or skipped if it only waited for a failure.
"""

import time
from collections.abc import Callable, Collection, Sequence
from functools import cache

from tailrace.db import clock, connections, locks
from tailrace.db.query import prepared, query
from tailrace.db.sql.arrays import number_array
from tailrace.db.sql.plans import probe
from tailrace.jobs.engine.waking import wake

WAITED = "waited for job "
"""Begins the error of a job that was cancelled because its parent did not complete."""
CANCELLED_WITH_PARENT = f"""
after_id = ANY(%(ids)s) AND state = 'cancelled' AND error LIKE '{WAITED}%%'"""
"""SQL: a row of the jobs that were cancelled because one of the jobs `ids` did not complete."""
NOT_NEEDED = "none of the jobs that it waited for failed"
"""The error of a skipped job that waited for a failure."""

on_cancelled: list[Callable[[Sequence[int]], None]] = []
"""Called after the commit with the jobs that were cancelled because a parent did not complete."""
LOCKED_PAUSES = (0.01, 0.05, 0.2)
"""Seconds between tries to decide a job whose row another transaction has locked."""
BATCH = 5000

PAUSED = """EXISTS (
  SELECT 1 FROM tailrace_jobs_flow f WHERE f.id = {job}.flow_id AND f.paused_at IS NOT NULL)"""
"""SQL: whether the flow of a job is paused: then the job is not decided."""

# If a crash loses the decision, the sweeper repeats it: so the commit does not wait for the disk,
# unless it is that of a caller's transaction.
#
# A locked job is passed over: a publisher has merged another job into it, and decides it after the
# commit. A job of a flow is decided again after a pause: its lock is mostly that of `_MARK`.
#
# It is locked in a LATERAL subquery, since a plan of a join that was made while the table was empty
# may read the whole table.
#
# The next parent of a job with many is looked for below the earlier one, because parents are chosen
# from the newest to the oldest. So the rows of 10,000 parents are read once in all. If there is
# none, all rows are read, which also finds a parent that was added, or replayed, after it had been
# passed.
_DECIDE = """
WITH quick AS MATERIALIZED (
  SELECT CASE WHEN %(quick)s THEN set_config('synchronous_commit', 'off', true) END
),
candidate AS MATERIALIZED (
  SELECT w.* FROM quick, (
    SELECT c.id, c.flow_id, c.created_at, c.after_id AS parent, {state_of_parent} AS state
    FROM tailrace_jobs_live c WHERE {which} AND c.state = 'waiting' AND NOT {paused} OFFSET 0
  ) w WHERE w.parent IS NULL OR w.state NOT IN ('waiting', 'pending', 'running', 'deleted')
),
free AS MATERIALIZED (
  SELECT candidate.*, EXISTS (
    SELECT 1 FROM tailrace_jobs_dependency d WHERE d.job_id = candidate.id OFFSET {few}
  ) AS has_many
  FROM candidate, LATERAL (
    SELECT FROM tailrace_jobs_live c
    WHERE {of_candidate} AND c.state = 'waiting'
      AND c.after_id IS NOT DISTINCT FROM candidate.parent
    FOR NO KEY UPDATE SKIP LOCKED
  ) locked
),
decided AS MATERIALIZED (
  SELECT free.id, free.parent, free.state, all_of.*,
    coalesce(next.parent_id, all_of.unfinished) AS next,
    CASE
      WHEN all_of.dependencies > 0 THEN all_of.lacking
      WHEN free.state NOT IN ('completed', 'skipped') THEN free.parent END AS broken,
    CASE WHEN all_of.dependencies > 0 THEN all_of.states_lacking[1] ELSE free.state END AS was,
    next.parent_id IS NULL AND all_of.unfinished IS NULL AND (
      all_of.ended_earlier OR all_of.dependencies = 0 AND free.state = 'earlier'
    ) AS is_open
  FROM free
  LEFT JOIN LATERAL (
    SELECT d.parent_id FROM tailrace_jobs_dependency d
    WHERE free.has_many AND d.job_id = free.id AND d.parent_id < free.parent AND (
      SELECT q.state FROM tailrace_jobs_live q WHERE {of_dependency}
    ) IN ('waiting', 'pending', 'running')
    ORDER BY d.parent_id DESC LIMIT 1
  ) next ON true
  LEFT JOIN LATERAL (
    SELECT count(*) AS dependencies,
      max(parent_id) FILTER (WHERE state IN ('waiting', 'pending', 'running')) AS unfinished,
      coalesce(bool_or(state = 'earlier'), false) AS ended_earlier,
      min(parent_id) FILTER (
        WHERE need = 'success' AND state NOT IN ('completed', 'skipped')
      ) AS lacking,
      array_agg(state ORDER BY parent_id) FILTER (
        WHERE need = 'success' AND state NOT IN ('completed', 'skipped')
      ) AS states_lacking,
      bool_or(state IN ('failed', 'cancelled'))
        FILTER (WHERE need = 'failure') AS has_failure
    FROM (
      SELECT d.parent_id, d.need, {state_of_dependency} AS state
      FROM tailrace_jobs_dependency d WHERE d.job_id = free.id OFFSET 0
    ) parents
  ) all_of ON next.parent_id IS NULL
),
moved AS (
  UPDATE tailrace_jobs_live c
  SET after_id = coalesce(d.next, d.broken, c.after_id),
      state = CASE
        WHEN d.next IS NOT NULL THEN 'waiting'
        WHEN d.broken IS NOT NULL THEN 'cancelled'
        WHEN d.has_failure = false THEN 'skipped'
        ELSE 'pending' END,
      due_at = CASE WHEN d.next IS NULL THEN greatest(c.due_at, {now}) ELSE c.due_at END,
      error = CASE
        WHEN d.next IS NOT NULL THEN c.error
        WHEN d.broken IS NOT NULL THEN '{waited}' || d.broken || ', which was ' || d.was
        WHEN d.has_failure = false THEN '{not_needed}'
        ELSE '' END,
      finished_at = CASE
        WHEN d.next IS NULL AND (d.broken IS NOT NULL OR d.has_failure = false) THEN {now} END
  FROM decided d WHERE {of_decided} AND d.is_open IS NOT TRUE
  RETURNING c.id, c.handler, c.state, c.after_id
)
SELECT id, NULL::bigint, handler, state, after_id FROM moved
UNION ALL
SELECT id, NULL, NULL, 'open', NULL FROM decided WHERE is_open
UNION ALL
SELECT id, flow_id, NULL, 'locked', NULL FROM candidate WHERE id NOT IN (SELECT id FROM free)
"""
FEW = 32
"""The parents of a job with at most this many are all read at each decision."""


def _state(id: str, since: str, today: str | None) -> str:
    """Return SQL for the state of the job with this id; `id` and `since` are SQL, too.

    With `today`, the SQL reads the live jobs and this partition of the history. Its value is
    `earlier` if the job is in neither. Without `today`, it reads the live jobs, then the days of
    the history from `since` to now, then all days. Its value is `deleted` if there is no such job.
    """
    of_job = f"SELECT q.state FROM {{table}} q WHERE {probe('q.id', id)}"
    live = of_job.format(table="tailrace_jobs_live")
    if today is not None:
        return f"coalesce(({of_job.format(table=today)}), ({live}), 'earlier')"
    day = "({at} AT TIME ZONE 'UTC')::date"
    days = f"q.done_on BETWEEN {day.format(at=since)} AND {day.format(at=clock.NOW)}"
    history = of_job.format(table="tailrace_jobs_job")
    return f"coalesce(({live}), ({history} AND {days}), ({history}), 'deleted')"


OF_PARENTS, OF_JOBS = "c.after_id = ANY(%(ids)s)", "c.id = ANY(%(ids)s)"


@cache
def decide_sql(which: str, today: str | None) -> str:
    """Return the statement that decides jobs. With `today`, it reads only the live jobs and this
    partition of the history, and leaves jobs with other parents open. Without `today`, it reads all
    days of the history: starting it takes longer than deciding some jobs."""
    return _DECIDE.format(
        which=which,
        state_of_parent=_state("c.after_id", "c.created_at", today),
        state_of_dependency=_state("d.parent_id", "free.created_at", today),
        of_candidate=probe("c.id", "candidate.id"),
        of_dependency=probe("q.id", "d.parent_id"),
        of_decided=probe("c.id", "d.id"),
        paused=PAUSED.format(job="c"),
        few=FEW,
        now=clock.NOW,
        waited=WAITED,
        not_needed=NOT_NEEDED,
    )


def release(parents: Sequence[int], today: str | None = None) -> int:
    """Change the state of the jobs that wait for these finished jobs, if no other parent is
    unfinished: to pending, or to cancelled or skipped because of a parent's end. Jobs that wait for
    a job which ends in this way follow. Wake the queues of the pending jobs. Return the number of
    changed jobs.

    `today` is the partition of the history in which most of the parents are.
    """
    return _decide(OF_PARENTS, parents, today)


def decide(jobs: Sequence[int]) -> int:
    """Change the state of these waiting jobs as `release` does, and return the number of changed
    jobs. A job with an unfinished parent is not changed."""
    return _decide(OF_JOBS, jobs)


def _decide(
    which: str,
    ids: Sequence[int],
    today: str | None = None,
    pauses: Sequence[float] = LOCKED_PAUSES,
) -> int:
    changed, quick = 0, not connections.current().in_atomic_block
    queues: set[str] = set()
    watched: set[int] = set()
    locked: set[int] = set()
    while ids:
        ended, cancelled, is_open = [], [], []
        for start in range(0, len(ids), BATCH):
            for id, flow, handler, state, after in prepared(
                decide_sql(which, today), ids=number_array(ids[start : start + BATCH]), quick=quick
            ):
                changed += state not in ("open", "locked")
                if state == "pending":
                    queues.add(handler)
                elif state == "waiting":
                    watched.add(after)
                elif state == "open":
                    is_open.append(id)
                elif state != "locked":
                    ended.append(id)
                    cancelled += [id] if state == "cancelled" else []
                elif flow is not None:
                    locked.add(id)
        for tell in on_cancelled if cancelled else ():
            connections.on_commit(tell, cancelled)
        if is_open:
            changed += _decide(OF_JOBS, is_open, pauses=pauses)
        which, ids = OF_PARENTS, ended
    wake.on_commit(queues)
    if watched:
        release_on_commit(watched)
    if locked and pauses:
        connections.on_commit(_decide_later, sorted(locked), pauses)
    return changed


def _decide_later(jobs: Sequence[int], pauses: Sequence[float]) -> None:
    """Decide jobs whose rows were locked; if they stay locked, the sweeper does."""
    time.sleep(pauses[0])
    _decide(OF_JOBS, jobs, pauses=pauses[1:])


def release_on_commit(parents: Collection[int]) -> None:
    """After the commit, decide the jobs that wait for these parents, if a parent has finished by
    then."""
    connections.on_commit(_mark, sorted(parents))


# A parent may be settled by a statement that began before our commit and cannot see the waiting
# job. Either that statement updates the row after this one and sees the mark, or this statement
# waits for it, finds the parent finished, and the caller releases the job. So the mark is written
# even if it is already set.
_MARK = f"""
WITH {locks.LIMITED},
marked AS (
  UPDATE tailrace_jobs_live j SET has_dependents = true FROM limited
  WHERE j.id = ANY(%(parents)s) AND j.state IN ('waiting', 'pending', 'running')
  RETURNING j.id
), {locks.restored("marked")}
SELECT marked.id FROM restored LEFT JOIN marked ON true
"""
MARK_SECONDS = 2.0
"""How long the caller waits for the row of a parent. After that, the sweeper releases the job."""


def _mark(parents: list[int]) -> None:
    with locks.named(lambda: f"the parents {parents}"):
        rows = query(_MARK, parents=parents, wait_seconds=MARK_SECONDS)
    unfinished = {id for (id,) in rows}
    release([id for id in parents if id not in unfinished])
