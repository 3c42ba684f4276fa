"""The statements that settle claims, and the parts of them that a rescue uses, too.

`taken.by` is an unstarted job that has the unique key of a job which would become pending again:
the job is merged into it.
"""

from collections.abc import Sequence
from datetime import date

from tailrace.db import clock
from tailrace.db.sql.plans import probe, unindexed

MERGED = "'merged into job ' || taken.by"


def taken_by(job: str) -> str:
    """Return the FROM item `taken` for the row with the alias `job`, which has the columns handler
    and unique_key."""
    return f"""LATERAL (
    SELECT (
      SELECT k.id FROM tailrace_jobs_live k
      WHERE {probe("k.handler", f"{job}.handler")}
        AND {probe("k.unique_key", f"{job}.unique_key")}
        AND k.state IN ('waiting', 'pending') LIMIT 1
    ) AS by
  ) taken"""


def record_attempts(ended: str) -> str:
    """Return SQL that inserts an attempt for each row of the query `ended`."""
    return f"""
  INSERT INTO tailrace_jobs_attempt (job_id, claim_no, started_at, call_after, call_took,
                            finished_at, outcome, error_class, message, traceback, worker)
  SELECT id, claim_no, started_at, call_after, call_took, {clock.NOW},
         outcome, error_class, message, traceback, worker
  FROM ({ended}) ended"""


_WAITED_FOR = f"""(
  j.has_dependents
  OR EXISTS (
    SELECT 1 FROM tailrace_jobs_live c
    WHERE {probe("c.after_id", "j.id")} AND c.state = 'waiting'))"""
"""Whether another job waits for this one. A dependent job that was committed after the statement
began is visible only by `has_dependents`, in the row that the statement updates."""

_RUNNING = f"{probe('j.id', 'v.id')} AND {unindexed('j.state')} = 'running'"
"""The running job of the verdict, looked up by its id, so that other running jobs cost nothing."""

_OWN_CLAIM = "j.claim_no = v.claim_no AND j.worker = v.worker"
"""Only the owner of a claim can settle it. `worker` is unique for each claim."""

_AT_THE_END = {
    "state": "v.state",
    "error": "v.error",
    "result": "coalesce(v.result::jsonb, j.result) AS result",
    "finished_at": f"{clock.NOW} AS finished_at",
    "isolate": "false AS isolate",
    "suspect_group": "NULL::int AS suspect_group",
    "lease_until": "NULL::timestamptz AS lease_until",
    "call_after": "v.call_after",
    "call_took": "v.call_took",
}


def finish_sql(table: str, day: date, columns: Sequence[str]) -> str:
    """Return the statement that settles ended jobs and moves them to the partition of this day. It
    is for the usual case and costs half as much as SETTLE. `columns`: of the live table.

    It moves no jobs if a column was added to the live table in the meantime or the day has ended;
    then `settle` settles them without moving them. Rows are deleted and inserted, because a
    statement that waits for a row gets an error if an UPDATE moves the row to another partition,
    but not if the row is deleted.
    """
    values = _AT_THE_END | {"done_on": f"'{day}'::date AS done_on"}
    names = ", ".join(columns)
    return f"""
WITH ended AS MATERIALIZED (
  DELETE FROM tailrace_jobs_live j
  USING unnest(
    %(id)s::bigint[], %(claim_no)s::int[], %(worker)s::text[], %(call_after)s::real[],
    %(call_took)s::real[], %(state)s::text[], %(error)s::text[], %(result)s::text[])
  AS v (id, claim_no, worker, call_after, call_took, state, error, result)
  WHERE {_RUNNING} AND {_OWN_CLAIM} AND (
    SELECT relnatts = %(attributes)s AND ({clock.NOW} AT TIME ZONE 'UTC')::date = '{day}'
    FROM pg_class WHERE oid = 'tailrace_jobs_live'::regclass)
  RETURNING {", ".join(values.get(name, f"j.{name}") for name in columns)},
    {_WAITED_FOR} AS waited_for
),
moved AS (INSERT INTO {table} ({names}) SELECT {names} FROM ended)
SELECT id, state, waited_for FROM ended
"""


_TRIED = """
    SELECT * FROM ended WHERE id NOT IN (SELECT job_id FROM snoozed_again)"""

SETTLE = f"""
WITH verdict AS MATERIALIZED (
  SELECT * FROM unnest(
    %(id)s::bigint[], %(claim_no)s::int[], %(worker)s::text[], %(call_after)s::real[],
    %(call_took)s::real[], %(state)s::text[], %(attempt)s::text[], %(delay)s::float8[],
    %(until)s::timestamptz[], %(charged)s::bool[],
    %(result)s::text[], %(error)s::text[], %(error_class)s::text[], %(traceback)s::text[],
    %(suspect_group)s::int[], %(failure_group)s::bigint[])
  AS v (id, claim_no, worker, call_after, call_took, state, outcome, delay, until, charged,
        result, error, error_class, traceback, suspect_group, failure_group)
),
settled AS (
  UPDATE tailrace_jobs_live j
  SET state = CASE
        WHEN v.state <> 'pending' THEN v.state
        WHEN j.cancel_requested THEN 'cancelled'
        WHEN taken.by IS NOT NULL THEN 'skipped'
        ELSE 'pending' END,
      error = CASE
        WHEN v.state = 'pending' AND j.cancel_requested THEN 'cancelled while running'
        WHEN v.state = 'pending' AND taken.by IS NOT NULL THEN {MERGED}
        ELSE v.error END,
      due_at = CASE WHEN v.state = 'pending' AND (v.outcome IS NOT NULL OR v.delay > 0)
        THEN greatest({clock.NOW} + make_interval(secs => v.delay), v.until) ELSE j.due_at END,
      finished_at = CASE
        WHEN v.state = 'pending' AND NOT j.cancel_requested AND taken.by IS NULL THEN NULL
        ELSE {clock.NOW} END,
      attempt = j.attempt - (NOT v.charged)::int,
      result = coalesce(v.result::jsonb, j.result),
      isolate = false, suspect_group = v.suspect_group, lease_until = NULL,
      call_after = v.call_after, call_took = v.call_took,
      failure_group_id = coalesce(v.failure_group, j.failure_group_id)
  FROM verdict v, LATERAL (
    SELECT (
      SELECT k.id FROM tailrace_jobs_live k, tailrace_jobs_live own
      WHERE v.state = 'pending' AND {probe("own.id", "v.id")}
        AND {probe("k.handler", "own.handler")} AND {probe("k.unique_key", "own.unique_key")}
        AND k.state IN ('waiting', 'pending') LIMIT 1
    ) AS by
  ) taken
  WHERE {_RUNNING} AND {_OWN_CLAIM}
  RETURNING j.id, j.state, j.started_at, j.call_after, j.call_took, {_WAITED_FOR} AS waited_for,
            v.claim_no, v.worker, v.outcome, v.error_class, v.error AS message, v.traceback
),
ended AS (
  SELECT * FROM settled WHERE outcome IS NOT NULL
),
-- A job that waits for something is snoozed hundreds of times: the row of its last snooze is
-- moved to this claim, and counts.
snoozed_again AS (
  UPDATE tailrace_jobs_attempt a
  SET times = a.times + 1, claim_no = e.claim_no, finished_at = {clock.NOW},
      error_class = e.error_class, message = e.message, worker = e.worker
  FROM ended e, LATERAL (
    SELECT id, outcome FROM tailrace_jobs_attempt WHERE job_id = e.id ORDER BY claim_no DESC LIMIT 1
  ) newest
  WHERE e.outcome = 'snoozed' AND newest.outcome = 'snoozed'
    AND {probe("a.id", "newest.id")}
  RETURNING a.job_id
),
tried AS ({record_attempts(_TRIED)})
SELECT id, state, waited_for FROM settled
"""
