-- The end of each claim: the rows of `kept` become running. `worker` is unique for each claim.
--
-- A job of a claim with one job begins at once. For other claims `give_back` records when each call
-- begins.
--
-- If a crash of the database loses a claim, its worker is no longer in the row and so cannot settle
-- the job. So the commit need not wait for the disk.
UPDATE tailrace_jobs_live j
SET state = 'running', attempt = j.attempt + 1, claim_no = j.claim_no + 1, worker = %(worker)s,
    begun = %(in_batch)s OR (SELECT count(*) = 1 OR bool_or(isolate) FROM candidate),
    started_at = {now}, lease_until = {now} + make_interval(secs => %(lease)s),
    call_after = NULL, call_took = NULL
FROM kept LEFT JOIN tailrace_events_event e ON e.id = ANY(ARRAY[kept.event_id])
WHERE j.id = ANY(ARRAY[kept.id]) AND (j.state || '') = 'pending'
  AND (SELECT set_config('synchronous_commit', 'off', true)) = 'off'
RETURNING j.priority, extract(epoch FROM j.due_at - {now})::float8, j.id, kept.awake,
          j.routing_key, j.payload, j.lane, j.attempt, j.claim_no, j.isolate,
          j.suspect_group, j.event_id, {event_columns}
