"""The statements that insert jobs, and that merge a job into an unstarted job with its unique key.

Rows are passed as arrays: one statement for one job or a thousand. Rows are inserted and locked in
the order of their unique keys, so that two calls with the same keys cannot deadlock.
"""

from tailrace.db import clock, locks

COLUMNS = """handler, event_id, routing_key, payload, state, priority, lane, due_at,
  attempt, claim_no, worker, isolate, after_id, unique_key, schedule_id, slot,
  progress_note, error, created_at, finished_at, cancel_requested"""
VALUES = f"""handler, event_id, routing_key, payload::jsonb, state, priority, lane,
  coalesce(due_at, {clock.NOW}) + make_interval(secs => delay),
  0, 0, '', false, after_id, unique_key, schedule_id, slot,
  '', error, {clock.NOW}, CASE WHEN state IN ('failed', 'skipped') THEN {clock.NOW} END, false"""
ARRAYS = """
  %(handler)s::text[], %(event_id)s::bigint[], %(routing_key)s::text[], %(payload)s::text[],
  %(state)s::text[], %(priority)s::int[], %(lane)s::text[], %(due_at)s::timestamptz[],
  %(delay)s::float8[], %(after_id)s::bigint[], %(unique_key)s::text[], %(schedule_id)s::bigint[],
  %(slot)s::timestamptz[], %(error)s::text[]"""
_ROWS = f"unnest({ARRAYS})"
NAMES = """handler, event_id, routing_key, payload, state, priority, lane, due_at, delay, after_id,
  unique_key, schedule_id, slot, error"""

_INSERT = f"""
INSERT INTO tailrace_jobs_live ({COLUMNS})
SELECT {VALUES} FROM {_ROWS} AS new ({NAMES})"""
# For rows that cannot conflict: ON CONFLICT costs an index probe and 48 B of WAL per row.
INSERT_NEW = f"{_INSERT} RETURNING id"
# A row conflicts if its event has a job with this handler and routing key.
INSERT = f"{_INSERT} ON CONFLICT DO NOTHING RETURNING id"

# A row conflicts as above, or if an unstarted job has its unique key. The statement waits for the
# transaction of an uncommitted job with the key. Ids are assigned in the order of the rows, because
# ordered lanes run jobs in the order of ids.
INSERT_WITH_KEYS = f"""
WITH {locks.LIMITED},
new AS MATERIALIZED (
  SELECT nextval('tailrace_jobs_job_id_seq') AS id, numbered.*
  FROM {_ROWS} WITH ORDINALITY AS numbered ({NAMES}, place)
),
inserted AS (
  INSERT INTO tailrace_jobs_live (id, {COLUMNS})
  SELECT id, {VALUES} FROM limited, new ORDER BY handler, unique_key, place
  ON CONFLICT DO NOTHING
  RETURNING id
), {locks.restored("inserted")}
SELECT place - 1, CASE WHEN id IN (SELECT id FROM inserted) THEN id END FROM restored, new
ORDER BY place
"""

_WANTED = f"""
wanted AS MATERIALIZED (
  SELECT w.*, (
      SELECT j.id FROM tailrace_jobs_live j WHERE j.event_id = w.event_id AND j.handler = w.handler
        AND j.routing_key = w.routing_key LIMIT 1) IS NOT NULL AS owed
  FROM {_ROWS} WITH ORDINALITY AS w ({NAMES}, place)
),
keys AS MATERIALIZED (
  SELECT handler, unique_key, max(place) AS newest, count(*) AS jobs
  FROM limited, wanted WHERE NOT owed GROUP BY handler, unique_key ORDER BY handler, unique_key
)"""
_UNSTARTED = f"""
  SELECT id, handler, unique_key, event_id, routing_key, payload, lane, priority,
         CASE state WHEN 'waiting' THEN after_id END AS waits_for,
         state = 'pending' AND due_at <= {clock.NOW} AS due
  FROM tailrace_jobs_live j WHERE j.handler = keys.handler AND j.unique_key = keys.unique_key
    AND j.state IN ('waiting', 'pending') LIMIT 1"""

# For a call with one unique key. First the unstarted job with the key is locked, as in LOCK. If
# there is such a job, the row with the key becomes a row for the merged job of an event; without an
# event it is left out. The rows keep their order, since only a nested loop can execute the join.
INSERT_WITH_KEY = f"""
WITH {locks.LIMITED},
keys AS (SELECT %(key_of)s::text AS handler, %(key)s::text AS unique_key),
taken AS MATERIALIZED (
  SELECT j.* FROM limited, keys, LATERAL ({_UNSTARTED} FOR SHARE) j
),
inserted AS (
  INSERT INTO tailrace_jobs_live ({COLUMNS})
  SELECT {VALUES} FROM (
    SELECT given.handler, given.event_id, given.routing_key, given.payload, given.priority,
           given.lane, given.unique_key, schedule_id, slot,
           CASE WHEN taken.id IS NULL THEN state ELSE 'skipped' END AS state,
           CASE WHEN taken.id IS NULL THEN due_at END AS due_at,
           CASE WHEN taken.id IS NULL THEN delay ELSE 0 END AS delay,
           CASE WHEN taken.id IS NULL THEN after_id END AS after_id,
           CASE WHEN taken.id IS NULL THEN error ELSE 'merged into job ' || taken.id END AS error
    FROM {_ROWS} AS given ({NAMES}) LEFT JOIN taken ON given.unique_key IS NOT NULL
    WHERE taken.id IS NULL OR given.event_id IS NOT NULL
  ) AS new
  ON CONFLICT DO NOTHING
  RETURNING id, unique_key
), {locks.restored("inserted")}
SELECT inserted.id, inserted.unique_key, taken.id, taken.waits_for, taken.due
FROM restored LEFT JOIN inserted ON true LEFT JOIN taken ON true
"""

# Returns for each row whether its event already has the job, and the unstarted job with its key, if
# it still exists. No worker claims that job until the caller's transaction ends, because claims
# pass over locked rows. Other publishers share the lock.
LOCK = f"""
WITH {locks.LIMITED}, {_WANTED},
taken AS MATERIALIZED (
  SELECT j.* FROM keys, LATERAL ({_UNSTARTED} FOR SHARE) j
), {locks.restored("taken")}
SELECT wanted.place - 1, wanted.owed, taken.id, taken.waits_for, taken.due
FROM restored, wanted LEFT JOIN taken USING (handler, unique_key) ORDER BY wanted.place
"""

# The same, and the job gets the values of the newest row. It keeps the earlier due time and the
# more urgent priority, so that a burst cannot delay it for ever. The last columns of the result are
# the event and the other values of the job before the update.
REPLACE = f"""
WITH {locks.LIMITED}, {_WANTED},
taken AS MATERIALIZED (
  SELECT j.*, keys.newest, keys.jobs
  FROM keys, LATERAL ({_UNSTARTED} FOR NO KEY UPDATE) j
),
replaced AS (
  UPDATE tailrace_jobs_live j
  SET event_id = w.event_id, routing_key = w.routing_key, payload = w.payload::jsonb,
      lane = w.lane, priority = least(j.priority, w.priority),
      due_at = least(j.due_at, coalesce(w.due_at, {clock.NOW}) + make_interval(secs => w.delay)),
      attempt = 0, error = '', merged = j.merged + taken.jobs
  FROM taken JOIN wanted w ON w.place = taken.newest
  WHERE j.id = taken.id
  RETURNING j.id, j.state = 'pending' AND j.due_at <= {clock.NOW} AS due
), {locks.restored("replaced")}
SELECT wanted.place - 1, wanted.owed, taken.id, taken.waits_for, replaced.due,
       wanted.place = taken.newest, taken.event_id, taken.routing_key, taken.payload::text,
       taken.lane, taken.priority
FROM restored, wanted LEFT JOIN (taken JOIN replaced USING (id)) USING (handler, unique_key)
ORDER BY wanted.place
"""

# Passes over rows that other publishers have locked, so that publishers do not wait for each other.
# Returns the ids of these rows.
COUNT_MERGED = """
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
free AS MATERIALIZED (
  SELECT j.id, v.jobs
  FROM quick, unnest(%(ids)s::bigint[], %(jobs)s::int[]) AS v (id, jobs)
  JOIN tailrace_jobs_live j ON j.id = v.id ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
),
counted AS (
  UPDATE tailrace_jobs_live j SET merged = j.merged + free.jobs FROM free WHERE j.id = free.id
    RETURNING j.id
)
SELECT j.id FROM tailrace_jobs_live j
WHERE j.id = ANY(%(ids)s::bigint[]) AND j.id NOT IN (SELECT id FROM counted)
"""
