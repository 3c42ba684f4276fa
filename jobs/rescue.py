"""rescue: a running job whose lease expired has lost its worker: it runs again, or has failed."""

from django.db import connection

from events import clock
from jobs import continuation, registry, wake
from jobs.report import Failure, tell

LOST = "its worker was lost: the lease expired while it ran"

# The attempt was counted when it was claimed, so a job that kills its workers ends in `failed`.
# It goes back marked, to be claimed alone; SKIP LOCKED leaves one that is being settled now.
# Of several with one unique key, one goes back; the next rescue merges the others into it.
_RESCUE = f"""
WITH expired AS MATERIALIZED (
  SELECT j.id, j.handler, j.unique_key, coalesce(h.max_attempts, 1) AS max_attempts
  FROM jobs_job j
  LEFT JOIN unnest(%(handlers)s::text[], %(max_attempts)s::int[])
    AS h (name, max_attempts) ON h.name = j.handler
  WHERE j.state = 'running' AND j.lease_until < {clock.NOW}
    AND (h.name IS NOT NULL OR j.lease_until < {clock.NOW} - interval '1 hour')
  ORDER BY j.lease_until LIMIT %(limit)s FOR UPDATE OF j SKIP LOCKED
),
chosen AS (
  SELECT DISTINCT ON (handler, unique_key, CASE WHEN unique_key IS NULL THEN id END) *
  FROM expired ORDER BY handler, unique_key, CASE WHEN unique_key IS NULL THEN id END, id
),
rescued AS (
  UPDATE jobs_job j
  SET state = CASE
        WHEN j.cancel_requested THEN 'cancelled'
        WHEN j.attempt >= e.max_attempts THEN 'failed'
        WHEN taken.by IS NOT NULL THEN 'skipped'
        ELSE 'pending' END,
      error = CASE
        WHEN j.cancel_requested THEN 'cancelled while running'
        WHEN j.attempt < e.max_attempts AND taken.by IS NOT NULL
        THEN 'merged into job ' || taken.by ELSE %(lost)s END,
      finished_at = CASE
        WHEN j.cancel_requested OR j.attempt >= e.max_attempts OR taken.by IS NOT NULL
        THEN {clock.NOW} END,
      isolate = true, lease_until = NULL
  FROM chosen e, LATERAL (
    SELECT (SELECT k.id FROM jobs_job k
            WHERE k.handler = e.handler
              AND k.unique_key = e.unique_key AND k.state IN ('waiting', 'pending') LIMIT 1) AS by
  ) taken
  WHERE j.id = e.id AND j.state = 'running' AND j.lease_until < {clock.NOW}
  RETURNING j.id, j.handler, j.state, j.claim_no, j.started_at, j.worker, j.event_id,
            j.routing_key, j.attempt, e.max_attempts
),
tried AS (
  INSERT INTO jobs_attempt (job_id, claim_no, started_at, finished_at, outcome, error_class,
                            message, traceback, worker)
  SELECT id, claim_no, started_at, {clock.NOW}, 'lost', '', %(lost)s, '', worker FROM rescued
)
SELECT r.id, r.handler, r.state, r.event_id, coalesce(e.type, ''), r.routing_key, r.attempt,
       r.max_attempts, r.claim_no
FROM rescued r LEFT JOIN events_event e ON e.id = r.event_id
"""


def rescue(limit: int = 1000) -> int:
    """Take jobs from workers that have been silent for longer than the lease; return how many."""
    handlers = registry.everything()
    params = {
        "handlers": list(handlers),
        "max_attempts": [handler.max_attempts for handler in handlers.values()],
        "limit": limit,
        "lost": LOST,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RESCUE, clock.params() | params)
        rows = cursor.fetchall()
    wake.on_commit({handler for _id, handler, state, *_ in rows if state == "pending"})
    if ended := [id for id, _handler, state, *_ in rows if state != "pending"]:
        continuation.release(ended)
    for row in rows:
        _tell(*row)
    return len(rows)


def _tell(
    id: int, handler: str, state: str, event_id: int | None, event_type: str, routing_key: str,
    attempt: int, max_attempts: int, claim_no: int,
) -> None:  # fmt: skip
    failure = Failure(
        handler=handler, job_id=id, event_id=event_id, event_type=event_type,
        routing_key=routing_key, attempt=attempt, max_attempts=max_attempts, claim_no=claim_no,
        final=state == "failed", retry_in=0.0, error=LOST, error_class="WorkerLost", exception=None,
    )  # fmt: skip
    tell(failure)
