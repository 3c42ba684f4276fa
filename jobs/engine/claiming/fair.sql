-- Claim due jobs of the lanes in turn. claim_sql.py puts the statement together, with the end in
-- take.sql. The kinds of fair claims in kinds.py give other values to
-- {lanes_in_turn}: the lanes that may take part
-- {before_turn}: a WITH query that {lanes_in_turn} reads
-- {count}: how many jobs the claim takes
-- {lane_count}: how many lanes with due jobs end the walk
-- {share}: how many jobs each lane gets
-- {jobs_of_lane}: the same, or less if the lane has a limit of its own
--
-- If fewer than {due_rows} jobs are due, the claim uses the lanes of these jobs (`due`), and lanes
-- without due jobs cost nothing. Otherwise it walks along all lanes with pending jobs until it has
-- enough jobs, for at most {steps} lanes; if it still has too few, the lanes of the first due jobs
-- follow. The next claim continues the walk where this one stopped, so that each lane gets its turn.
WITH RECURSIVE due AS MATERIALIZED (
  SELECT first.lane, p.priority FROM (VALUES (0), (1), (2), (3)) p (priority), LATERAL (
    SELECT lane FROM tailrace_jobs_live
    WHERE handler = %(handler)s AND state = 'pending' AND priority = p.priority AND due_at <= {now}
    ORDER BY due_at, id LIMIT {due_rows}
  ) first
  LIMIT {due_rows}
),
-- The walk: one index probe per lane (a loose index scan), which finds the lane's first job by
-- priority and due time. Mostly that job is due, and no other probe is needed. It goes from the
-- lane after the last served lane, round to that lane again, as far as `turn` reads it.
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
{before_turn}
-- A lane takes part if one of its due jobs can be locked; `first` is the first of them. A lane whose
-- due jobs are all locked, mostly by other claims, costs one index probe and gets no share.
turn AS MATERIALIZED (
  SELECT lanes.*, first.*
  FROM {lanes_in_turn} lanes, LATERAL (
    SELECT in_order.* FROM (VALUES (0), (1), (2), (3)) p (priority), LATERAL (
      SELECT id, event_id, isolate FROM tailrace_jobs_live
      WHERE handler = %(handler)s AND state = 'pending' AND lane = lanes.lane AND lane <> ''
        AND priority = p.priority AND due_at <= {now}
      ORDER BY due_at, id LIMIT 1 {lock}
    ) in_order
    WHERE p.priority >= lanes.priority LIMIT 1
  ) first
  LIMIT {count}
),
shares AS MATERIALIZED (
  SELECT {share} AS share FROM turn
),
candidate AS MATERIALIZED (
  SELECT c.id, c.event_id, c.isolate, row_number() OVER () AS place,
         coalesce((
           SELECT awake FROM tailrace_jobs_queueactivity
           WHERE name BETWEEN %(handler)s AND %(handler)s ORDER BY name DESC, slice DESC LIMIT 1
         ), false) AS awake
  -- The first job of each lane, then the rest of its share. A transaction does not pass over its
  -- own locks, so the scan finds the first job again.
  FROM tailrace_jobs_queue q, LATERAL (
    SELECT id, event_id, isolate FROM turn
    UNION ALL
    SELECT more.id, more.event_id, more.isolate
    FROM turn, LATERAL (
      SELECT in_order.* FROM (VALUES (0), (1), (2), (3)) p (priority), LATERAL (
        SELECT id, event_id, isolate FROM tailrace_jobs_live
        WHERE handler = %(handler)s AND state = 'pending' AND lane = turn.lane AND lane <> ''
          AND priority = p.priority AND due_at <= {now}
        ORDER BY due_at, id LIMIT {jobs_of_lane} {lock}
      ) in_order
      WHERE p.priority >= turn.priority LIMIT {jobs_of_lane}
    ) more
    WHERE (SELECT share FROM shares) > 1 AND more.id <> turn.id
  ) c
  WHERE q.name = %(handler)s AND q.paused_at IS NULL
  LIMIT {count}
),
-- As in plain.sql.
kept AS (
  SELECT id, event_id, awake FROM candidate
  WHERE place = (SELECT min(place) FROM candidate WHERE isolate)
     OR NOT EXISTS (SELECT 1 FROM candidate WHERE isolate)
)

-- The end of a claim. Each row begins with the lane at which the walk stopped early, or NULL; a
-- claim without jobs returns one row with that lane. `after` and `before` are read only if the walk
-- has ended: reading them would continue the walk.
, claimed AS (
{take}
)
SELECT CASE WHEN (SELECT count(*) FROM turn WHERE walked) < {lane_count} THEN coalesce(
         (SELECT lane FROM after WHERE step = {steps}),
         (SELECT lane FROM before WHERE step = {steps})) END,
       claimed.*
FROM (SELECT) once LEFT JOIN claimed ON TRUE

-- The end of a preview.
SELECT id, isolate, id IN (SELECT id FROM kept) FROM candidate ORDER BY place
