"""settle: write how a batch of claims ended, in one statement. Only a claim's owner settles."""

import time
from collections.abc import Sequence
from typing import Any

import structlog
from django.db import IntegrityError, InterfaceError, OperationalError, connection

from events import clock
from events.arrays import numbers
from events.hot import hot_cursor
from jobs import continuation
from jobs.run import Verdict
from jobs.states import State

log = structlog.get_logger(__name__)

TRIES = 6
"""A settlement that meets a broken connection is tried again: 0.1, 0.3, 0.9, 2.7, 8.1 s later."""

# The usual case: all are done and have nothing to tell. Half the cost of the statement below.
_COMPLETE = f"""
UPDATE jobs_job j
SET state = 'completed', error = '', finished_at = {clock.NOW}, isolate = false, lease_until = NULL
FROM unnest(%(id)s::bigint[], %(claim_no)s::int[]) AS v (id, claim_no)
WHERE j.id = v.id AND j.state = 'running' AND j.claim_no = v.claim_no
  AND j.worker = %(worker)s
RETURNING j.id, j.state,
  EXISTS (SELECT 1 FROM jobs_job c WHERE c.after_id = j.id AND c.state = 'waiting') AS followed
"""

# A retry whose unique key an unstarted job has taken meanwhile is merged into that one.
_SETTLE = f"""
WITH verdict AS MATERIALIZED (
  SELECT * FROM unnest(
    %(id)s::bigint[], %(claim_no)s::int[], %(state)s::text[], %(attempt)s::text[],
    %(delay)s::float8[], %(uncharged)s::int[], %(result)s::text[], %(error)s::text[],
    %(error_class)s::text[], %(traceback)s::text[])
  AS v (id, claim_no, state, outcome, delay, uncharged, result, error, error_class, traceback)
),
settled AS (
  UPDATE jobs_job j
  SET state = CASE
        WHEN v.state <> 'pending' THEN v.state
        WHEN j.cancel_requested THEN 'cancelled'
        WHEN taken.by IS NOT NULL THEN 'skipped'
        ELSE 'pending' END,
      error = CASE
        WHEN v.state = 'pending' AND j.cancel_requested THEN 'cancelled while running'
        WHEN v.state = 'pending' AND taken.by IS NOT NULL THEN 'merged into job ' || taken.by
        ELSE v.error END,
      due_at = CASE WHEN v.state = 'pending' AND v.outcome IS NOT NULL
        THEN {clock.NOW} + make_interval(secs => v.delay) ELSE j.due_at END,
      finished_at = CASE
        WHEN v.state = 'pending' AND NOT j.cancel_requested AND taken.by IS NULL THEN NULL
        ELSE {clock.NOW} END,
      attempt = j.attempt - v.uncharged,
      result = coalesce(v.result::jsonb, j.result),
      isolate = false, lease_until = NULL
  FROM verdict v, LATERAL (
    SELECT (
      SELECT k.id FROM jobs_job k, jobs_job own
      WHERE v.state = 'pending' AND own.id = v.id AND k.handler = own.handler
        AND k.unique_key = own.unique_key AND k.state IN ('waiting', 'pending') LIMIT 1
    ) AS by
  ) taken
  WHERE j.id = v.id AND j.state = 'running' AND j.claim_no = v.claim_no
    AND j.worker = %(worker)s
  RETURNING j.id, j.state, j.started_at,
    EXISTS (SELECT 1 FROM jobs_job c WHERE c.after_id = j.id AND c.state = 'waiting') AS followed
),
tried AS (
  INSERT INTO jobs_attempt (job_id, claim_no, started_at, finished_at, outcome, error_class,
                            message, traceback, worker)
  SELECT s.id, v.claim_no, s.started_at, {clock.NOW}, v.outcome, v.error_class, v.error,
         v.traceback, %(worker)s
  FROM settled s JOIN verdict v ON v.id = s.id
  WHERE v.outcome IS NOT NULL
)
SELECT id, state, followed FROM settled
"""


def settle(verdicts: Sequence[Verdict]) -> dict[int, str]:
    """Settle claims of one batch; return the state of each job that was still ours to settle."""
    if not verdicts:
        return {}
    plain = all(v.state is State.COMPLETED and v.result is None for v in verdicts)
    rows = _insist(*((_COMPLETE, _owner(verdicts)) if plain else (_SETTLE, _params(verdicts))))
    continuation.release([id for id, _state, followed in rows if followed])
    settled = {id: state for id, state, _followed in rows}
    lost = [verdict.job.id for verdict in verdicts if verdict.job.id not in settled]
    if lost:
        log.warning("settle.lease_lost", jobs=lost[:20], count=len(lost))
    return settled


def _owner(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return {
        "worker": verdicts[0].job.worker,
        "id": numbers(v.job.id for v in verdicts),
        "claim_no": numbers(v.job.claim_no for v in verdicts),
    }


def _params(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    return _owner(verdicts) | {
        "state": [v.state.value for v in verdicts],
        "attempt": [v.attempt and v.attempt.value for v in verdicts],
        "delay": [v.delay for v in verdicts],
        "uncharged": [0 if v.charged else 1 for v in verdicts],
        "result": [v.result for v in verdicts],
        "error": [v.error for v in verdicts],
        "error_class": [v.error_class for v in verdicts],
        "traceback": [v.traceback for v in verdicts],
    }


def _insist(statement: str, params: dict[str, Any]) -> list[tuple[int, str, bool]]:
    """Execute, again over a new connection if the old one breaks: the effects are done, and an
    unsettled job would have them done again. The guard makes a second execution harmless."""
    wait = 0.1
    for left in reversed(range(TRIES)):
        try:
            with hot_cursor() as cursor:
                cursor.execute(statement, clock.params() | params)
                return cursor.fetchall()
        except (OperationalError, InterfaceError, IntegrityError) as error:
            if not left or connection.in_atomic_block:
                raise
            log.warning("settle.again", jobs=params["id"], error=str(error).strip())
            if not isinstance(error, IntegrityError):
                connection.close()
            time.sleep(wait)
            wait *= 3
    raise AssertionError("unreachable")
