-- Claim the first pending job of each lane in turn, if it is due and no job of its lane is running.
-- To be used only under the queue's claim lock, because it reads without a lock whether a lane is
-- busy. The walk along the lanes is that of fair.sql.
WITH RECURSIVE due AS MATERIALIZED (
  SELECT first.lane, p.priority FROM (VALUES (0), (1), (2), (3)) p (priority), LATERAL (
    SELECT lane FROM tailrace_jobs_live
    WHERE handler = %(handler)s AND state = 'pending' AND priority = p.priority AND due_at <= {now}
    ORDER BY due_at, id LIMIT {due_rows}
  ) first
  LIMIT {due_rows}
),
after AS (
  (SELECT lane, priority, 1 AS step FROM tailrace_jobs_live
   WHERE handler = %(handler)s AND state = 'pending' AND lane <> '' AND lane > %(last_lane)s
     AND (SELECT count(*) FROM due) >= {due_rows}
   ORDER BY lane, priority, due_at, id LIMIT 1)
  UNION ALL
  SELECT following.* FROM after, LATERAL (
    SELECT lane, priority, after.step + 1 FROM tailrace_jobs_live
    WHERE handler = %(handler)s AND state = 'pending' AND lane <> '' AND lane > %(last_lane)s
      AND lane > after.lane
    ORDER BY lane, priority, due_at, id LIMIT 1
  ) following
  WHERE after.step < {steps}
),
before AS (
  (SELECT lane, priority, 1 AS step FROM tailrace_jobs_live
   WHERE handler = %(handler)s AND state = 'pending' AND lane <> '' AND lane <= %(last_lane)s
     AND (SELECT count(*) FROM due) >= {due_rows} AND (SELECT count(*) FROM after) < {steps}
   ORDER BY lane, priority, due_at, id LIMIT 1)
  UNION ALL
  SELECT following.* FROM before, LATERAL (
    SELECT lane, priority, before.step + 1 FROM tailrace_jobs_live
    WHERE handler = %(handler)s AND state = 'pending' AND lane <> '' AND lane <= %(last_lane)s
      AND lane > before.lane
    ORDER BY lane, priority, due_at, id LIMIT 1
  ) following
  WHERE before.step < {steps}
),
lanes AS (
  SELECT lane, priority, TRUE AS walked FROM after
  UNION ALL
  SELECT lane, priority, TRUE FROM before
  UNION ALL
  (SELECT lane, min(priority), FALSE FROM due
   WHERE lane <> '' AND lane NOT IN (SELECT lane FROM after UNION ALL SELECT lane FROM before)
   GROUP BY lane ORDER BY lane <= %(last_lane)s, lane)
),
-- The head of a lane is its oldest pending job, due or not. It is chosen first and then locked, so
-- that a lane with a locked head is passed over.
--
-- With BETWEEN and ORDER BY lane, only an index by lane and id needs no sort. With `lane = …` the
-- planner would use the primary key if the statistics contain only one lane.
turn AS MATERIALIZED (
  SELECT lanes.*, job.id, job.event_id, job.isolate
  FROM lanes, LATERAL (
    SELECT id, due_at FROM tailrace_jobs_live
    WHERE state = 'pending' AND handler = %(handler)s
      AND lane BETWEEN lanes.lane AND lanes.lane AND lane <> ''
    ORDER BY lane, id LIMIT 1
  ) head, LATERAL (
    SELECT id, event_id, isolate FROM tailrace_jobs_live
    WHERE id = ANY(ARRAY[head.id]) AND (state || '') = 'pending' AND due_at <= {now} AND (
      SELECT id FROM tailrace_jobs_live
      WHERE state = 'running' AND handler = %(handler)s
        AND lane BETWEEN lanes.lane AND lanes.lane AND lane <> ''
      ORDER BY lane LIMIT 1
    ) IS NULL
    {lock}
  ) job
  WHERE head.due_at <= {now}
  LIMIT %(limit)s
),
candidate AS MATERIALIZED (
  SELECT turn.id, turn.event_id, turn.isolate, row_number() OVER () AS place,
         coalesce((
           SELECT awake FROM tailrace_jobs_queueactivity
           WHERE name BETWEEN %(handler)s AND %(handler)s ORDER BY name DESC, slice DESC LIMIT 1
         ), false) AS awake
  FROM tailrace_jobs_queue q, turn
  WHERE q.name = %(handler)s AND q.paused_at IS NULL
  LIMIT %(limit)s
),
-- As in plain.sql.
kept AS (
  SELECT id, event_id, awake FROM candidate
  WHERE place = (SELECT min(place) FROM candidate WHERE isolate)
     OR NOT EXISTS (SELECT 1 FROM candidate WHERE isolate)
)

-- The end of a claim: as in fair.sql.
, claimed AS (
{take}
)
SELECT CASE WHEN (SELECT count(*) FROM turn WHERE walked) < %(limit)s THEN coalesce(
         (SELECT lane FROM after WHERE step = {steps}),
         (SELECT lane FROM before WHERE step = {steps})) END,
       claimed.*
FROM (SELECT) once LEFT JOIN claimed ON TRUE

-- The end of a preview.
SELECT id, isolate, id IN (SELECT id FROM kept) FROM candidate ORDER BY place
