"""operate: what an operator does to jobs and queues. Each is one guarded UPDATE."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import connection, transaction

from events import clock
from jobs import continuation, registry, wake
from jobs.handler import NO_LANE
from jobs.models import Queue

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Done:
    """What an operation did: the ids it changed, and for the others why not."""

    ids: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    """Running jobs that were asked to stop."""
    refused: dict[int, str] = field(default_factory=dict)


_CANCEL = f"""
UPDATE jobs_job SET
  state = CASE state WHEN 'running' THEN state ELSE 'cancelled' END,
  cancel_requested = true,
  error = CASE state WHEN 'running' THEN error ELSE %(reason)s END,
  finished_at = CASE state WHEN 'running' THEN finished_at ELSE {clock.NOW} END
WHERE id = ANY(%(ids)s) AND state IN ('waiting', 'pending', 'running')
RETURNING id, state
"""


def cancel(ids: Sequence[int], by: str = "an operator") -> Done:
    """Cancel unstarted jobs at once, and ask running ones to stop (`job.check_cancelled()`)."""
    with transaction.atomic():
        rows = _rows(_CANCEL, ids=list(ids), reason=f"cancelled by {by}")
        cancelled = [id for id, state in rows if state == "cancelled"]
        continuation.release(cancelled)
    done = Done(ids=cancelled, asked=[id for id, state in rows if state == "running"])
    changed = {id for id, _state in rows}
    done.refused = {id: "it is finished already" for id in ids if id not in changed}
    log.info("operate.cancel", by=by, cancelled=len(done.ids), asked=len(done.asked))
    return done


# A job whose parent did not complete waits again; one whose unique key is taken stays as it is;
# one from before its handler served lanes gets the lane of those that have none.
_REPLAY = f"""
WITH chosen AS (
  SELECT DISTINCT ON (j.handler, j.unique_key, CASE WHEN j.unique_key IS NULL THEN j.id END)
    j.id, p.state AS parent
  FROM jobs_job j LEFT JOIN jobs_job p ON p.id = j.after_id
  WHERE j.id = ANY(%(ids)s) AND j.state IN ('failed', 'cancelled', 'skipped')
    AND (j.unique_key IS NULL OR NOT EXISTS (
      SELECT 1 FROM jobs_job k WHERE k.handler = j.handler AND k.unique_key = j.unique_key
        AND k.state IN ('waiting', 'pending')))
)
UPDATE jobs_job j SET
  state = CASE WHEN c.parent IS NULL OR c.parent IN ('completed', 'skipped')
          THEN 'pending' ELSE 'waiting' END,
  lane = CASE WHEN j.lane = '' AND j.handler = ANY(%(laned)s) THEN %(no_lane)s ELSE j.lane END,
  attempt = 0, due_at = {clock.NOW}, finished_at = NULL, started_at = NULL, isolate = false,
  cancel_requested = false, error = '', result = NULL,
  progress_done = NULL, progress_total = NULL, progress_note = ''
FROM chosen c WHERE j.id = c.id AND j.state IN ('failed', 'cancelled', 'skipped')
RETURNING j.id, j.handler
"""

# What was cancelled only because this job did not complete waits for it again.
_REPLAY_FOLLOWERS = """
SELECT id FROM jobs_job
WHERE after_id = ANY(%(ids)s) AND state = 'cancelled' AND error LIKE 'waited for job %%'
"""


def replay(ids: Sequence[int], by: str = "an operator") -> Done:
    """Put failed, cancelled or skipped jobs back to pending, with all their attempts anew.

    Jobs that were cancelled because one of these did not complete wait for it again.
    """
    done = Done()
    with transaction.atomic():
        batch = list(ids)
        while batch:
            rows = _rows(_REPLAY, ids=batch, laned=registry.laned(), no_lane=NO_LANE)
            done.ids += [id for id, _handler in rows]
            wake.on_commit({handler for _id, handler in rows})
            batch = _followers([id for id, _handler in rows])
    changed = set(done.ids)
    done.refused = {id: _why_not(id) for id in ids if id not in changed}
    log.info("operate.replay", by=by, replayed=len(done.ids), refused=len(done.refused))
    return done


def _followers(ids: list[int]) -> list[int]:
    return [row[0] for row in _rows(_REPLAY_FOLLOWERS, ids=ids)] if ids else []


def _why_not(id: int) -> str:
    rows = _rows("SELECT state FROM jobs_job WHERE id = ANY(%(ids)s)", ids=[id])
    if not rows:
        return "there is no such job"
    state = rows[0][0]
    if state in ("failed", "cancelled", "skipped"):
        return "an unstarted job has its unique key"
    return f"it is {state}"


_RETRY_NOW = f"""
UPDATE jobs_job SET due_at = {clock.NOW}
WHERE id = ANY(%(ids)s) AND state = 'pending' AND due_at > {clock.NOW}
RETURNING id, handler
"""


def retry_now(ids: Sequence[int], by: str = "an operator") -> Done:
    """Make pending jobs that wait for their next try due at once."""
    with transaction.atomic():
        rows = _rows(_RETRY_NOW, ids=list(ids))
        wake.on_commit({handler for _id, handler in rows})
    done = Done(ids=[id for id, _handler in rows])
    changed = set(done.ids)
    done.refused = {id: "it is not waiting for a later try" for id in ids if id not in changed}
    log.info("operate.retry", by=by, retried=len(done.ids))
    return done


def pause(name: str, by: str) -> bool:
    """Stop claims of a queue; what runs goes on. Return False if it is paused already."""
    changed = Queue.objects.filter(name=name, paused_at=None).update(
        paused_at=clock.now(), paused_by=by
    )
    log.info("operate.pause", queue=name, by=by, changed=bool(changed))
    return bool(changed)


def resume(name: str, by: str) -> bool:
    """Let claims of a queue go on, and wake it. Return False if it is not paused."""
    changed = Queue.objects.filter(name=name, paused_at__isnull=False).update(
        paused_at=None, paused_by="", awake=False
    )
    if changed:
        wake.on_commit({name})
    log.info("operate.resume", queue=name, by=by, changed=bool(changed))
    return bool(changed)


def _rows(statement: str, **params: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, clock.params() | params)
        return cursor.fetchall()
