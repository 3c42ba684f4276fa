-- Claim the due jobs of a queue, the most urgent first. {since} limits the scan to due times after
-- a bookmark: see bookmarks.py.
WITH candidate AS MATERIALIZED (
  SELECT due.id, due.event_id, due.isolate, row_number() OVER () AS place,
         coalesce((
           SELECT awake FROM tailrace_jobs_queueactivity
           WHERE name BETWEEN %(handler)s AND %(handler)s ORDER BY name DESC, slice DESC LIMIT 1
         ), false) AS awake
  -- One index range per priority: a scan for the due time in all priorities would pass over all
  -- jobs that are due later.
  FROM tailrace_jobs_queue q, (VALUES (0), (1), (2), (3)) p (priority), LATERAL (
    SELECT id, event_id, isolate FROM tailrace_jobs_live
    WHERE handler = %(handler)s AND state = 'pending' AND priority = p.priority
      AND due_at <= {now} {since}
    ORDER BY due_at, id LIMIT %(limit)s {lock}
  ) due
  WHERE q.name = %(handler)s AND q.paused_at IS NULL
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
{take}

-- The end of a preview.
SELECT id, isolate, id IN (SELECT id FROM kept) FROM candidate ORDER BY place
