"""Release the jobs that wait for a finished job: they become pending if that job is completed or
skipped, else cancelled."""

from collections.abc import Collection, Sequence
from functools import partial

from tailrace.db import clock, connections, locks
from tailrace.db.query import query
from tailrace.db.sql.plans import probe
from tailrace.jobs.engine.waking import wake

WAITED = "waited for job "
"""Begins the error of a job that was cancelled because its parent did not complete."""
CANCELLED_WITH_PARENT = f"""
after_id = ANY(%(ids)s) AND state = 'cancelled' AND error LIKE '{WAITED}%%'"""
"""SQL: a row of the jobs that were cancelled because one of the jobs `ids` did not complete."""

# A locked job is passed over: a publisher has merged another job into it, and releases it after the
# commit.
_RELEASE = f"""
WITH free AS MATERIALIZED (
  SELECT c.id, p.id AS parent, p.state, p.state IN ('completed', 'skipped') AS done
  FROM tailrace_jobs_live c JOIN tailrace_jobs_job p ON {probe("p.id", "c.after_id")}
  WHERE c.after_id = ANY(%(parents)s) AND c.state = 'waiting'
    AND p.state IN ('completed', 'skipped', 'cancelled', 'failed')
  ORDER BY c.id FOR NO KEY UPDATE OF c SKIP LOCKED
)
UPDATE tailrace_jobs_live c
SET state = CASE WHEN done THEN 'pending' ELSE 'cancelled' END,
    due_at = greatest(c.due_at, {clock.NOW}),
    error = CASE WHEN done THEN ''
                 ELSE '{WAITED}' || free.parent || ', which was ' || free.state END,
    finished_at = CASE WHEN done THEN NULL ELSE {clock.NOW} END
FROM free WHERE {probe("c.id", "free.id")}
RETURNING c.id, c.handler, c.state
"""


def release(parents: Sequence[int]) -> int:
    """Release the jobs that wait for these finished jobs, and the jobs that wait for jobs which
    become cancelled. Wake the queues of jobs that become pending. Return the number of jobs."""
    moved, queues = 0, set()
    while parents:
        rows = query(_RELEASE, parents=list(parents))
        moved += len(rows)
        queues |= {handler for _id, handler, state in rows if state == "pending"}
        parents = [id for id, _handler, state in rows if state == "cancelled"]
    wake.on_commit(queues)
    return moved


def release_on_commit(parents: Collection[int]) -> None:
    """After the commit, release the inserted jobs that wait for these parents, if a parent has
    finished by then."""
    connections.current().on_commit(partial(_mark, sorted(parents)), robust=True)


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
