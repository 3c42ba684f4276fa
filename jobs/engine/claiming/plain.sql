-- Claim the due jobs of a queue, the most urgent first. claim_sql.py puts the statement together, with
-- the end in take.sql. The kinds of plain claims in kinds.py give other values to
-- {awake}: whether a message was sent for the jobs that are left
-- {unlimited}: a condition for the limits of the queue
-- {since}: a condition for the due time, so that the scan begins at a bookmark: see bookmarks.py
-- {begun}: a WITH query that begins the drain
WITH candidate AS MATERIALIZED (
  SELECT due.id, due.event_id, due.isolate, row_number() OVER () AS place,
         {awake} AS awake
  -- One index range per priority: a scan for the due time in all priorities would pass over all
  -- jobs that are due later.
  FROM tailrace_jobs_queue q, (VALUES (0), (1), (2), (3)) p (priority), LATERAL (
    SELECT id, event_id, isolate FROM tailrace_jobs_live
    WHERE handler = %(handler)s AND state = 'pending' AND priority = p.priority
      AND due_at <= {now} {since}
    ORDER BY due_at, id LIMIT %(limit)s {lock}
  ) due
  WHERE q.name = %(handler)s AND q.paused_at IS NULL {unlimited}
  LIMIT %(limit)s
),
-- A job whose worker was lost may be the one that kills workers. It is claimed as the only job,
-- before the others of its batch, so that it is not passed over for ever.
kept AS (
  SELECT id, event_id, awake FROM candidate
  WHERE place = (SELECT min(place) FROM candidate WHERE isolate)
     OR NOT EXISTS (SELECT 1 FROM candidate WHERE isolate)
)

-- The end of a claim.
{begun}
{take}

-- The end of a preview.
SELECT id, isolate, id IN (SELECT id FROM kept) FROM candidate ORDER BY place
