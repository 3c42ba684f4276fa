"""Statements that fill the tables for the tests of plans. Each day of the history begins at
midnight with its rows, at whatever time the tests run: a day with few rows has other plans."""

FINISHED, PENDING, EVENTS = 500_000, 100_000, 125_000
SINCE = "date_trunc('day', now(), 'UTC') - interval '25 days'"

FILL = f"""
INSERT INTO tailrace_events_event (source, source_id, type, schema_version, subject, payload, actor,
                          trace_parent, problem, occurred_at, recorded_at)
SELECT 's', g::text, 'test.happened', 1, 'who' || g % 1000, '{{}}', '', '', '', at, at
FROM generate_series(1, {EVENTS}) g,
  LATERAL (SELECT {SINCE} + g * interval '16 seconds' AS at) t;

INSERT INTO tailrace_jobs_job (handler, event_id, routing_key, state, priority, lane, due_at,
                      attempt, claim_no, worker, isolate, progress_note, error, created_at,
                      started_at, finished_at, cancel_requested, done_on)
SELECT (ARRAY['test.log', 'test.keyed', 'test.family', 'test.debounced'])[1 + g % 4], e, '',
       CASE WHEN g % 500 = 0 THEN 'failed' ELSE 'completed' END, 1,
       CASE WHEN g % 4 = 2 THEN 'who' || g % 1000 ELSE '' END, at, 1, 1, 'w', false, '', '',
       at, at, at, false,
       CASE WHEN g % 500 > 0 AND g % 20 > 0 THEN (at AT TIME ZONE 'UTC')::date END
FROM generate_series(0, {FINISHED - 1}) g, LATERAL (
  SELECT (SELECT min(id) FROM tailrace_events_event) + g / 4 AS e,
         {SINCE} + g * interval '4 seconds' AS at) t;

INSERT INTO tailrace_jobs_job (handler, routing_key, payload, state, priority, lane, due_at,
                      attempt, claim_no, worker, isolate, progress_note, error, created_at,
                      cancel_requested)
SELECT (ARRAY['test.work', 'test.work', 'test.work', 'test.fair', 'test.ordered'])[1 + g % 5], '',
       '{{}}', 'pending', g % 4, CASE WHEN g % 5 > 2 THEN 'lane' || g % 997 ELSE '' END,
       now() - (g % 5000 - 500) * interval '1 second', 0, 0, '', false, '', '', now(), false
FROM generate_series(1, {PENDING}) g;

INSERT INTO tailrace_jobs_job (handler, routing_key, payload, state, priority, lane, due_at,
                      attempt, claim_no, worker, isolate, progress_note, error, created_at,
                      after_id, lease_until, cancel_requested)
SELECT 'test.other', '', '{{}}', CASE WHEN g % 2 = 0 THEN 'waiting' ELSE 'running' END, 1, '',
       now(), 1, 1, 'w', false, '', '', now(),
       CASE WHEN g % 2 = 0 THEN (SELECT max(id) FROM tailrace_jobs_job) END,
       now() + interval '1 day' * (g % 3 + 1), false
FROM generate_series(1, 1000) g;

INSERT INTO tailrace_jobs_attempt (job_id, claim_no, finished_at, outcome, error_class, message,
                          traceback, worker)
SELECT (SELECT min(id) FROM tailrace_jobs_job) + g * 4, 7, now(), 'retried', '', '', '', ''
FROM generate_series(1, 100000) g;
"""

# Flows that ended in the history, and one whose callback waits for the last of 10,000 parents.
FILL_FLOWS = f"""
INSERT INTO tailrace_jobs_flow (name, created_at, paused_by, cancelled_by, deadline_at,
                                deadline_met, paused_at)
SELECT 'flow', at, '', '', CASE WHEN g % 3 = 0 THEN at + interval '1 day' END,
       CASE WHEN g % 3 = 0 THEN g % 2 = 0 END, CASE WHEN g > 1995 THEN at END
FROM generate_series(1, 2000) g,
  LATERAL (SELECT least(now(), {SINCE} + g * interval '19 minutes') AS at) t;

INSERT INTO tailrace_jobs_job (handler, routing_key, payload, state, priority, lane, due_at,
                      attempt, claim_no, worker, isolate, progress_note, error, created_at,
                      started_at, finished_at, cancel_requested, done_on, flow_id, flow_name)
SELECT 'test.log', '', '{{}}', 'completed', 1, '', f.created_at, 1, 1, 'w', false, '', '',
       f.created_at, f.created_at, f.created_at, false, (f.created_at AT TIME ZONE 'UTC')::date,
       f.id, 'job-' || g
FROM tailrace_jobs_flow f, generate_series(1, 10) g;

WITH flow AS (
  INSERT INTO tailrace_jobs_flow (name, created_at, paused_by, cancelled_by)
  VALUES ('wide', now(), '', '') RETURNING id
), parent AS (
  INSERT INTO tailrace_jobs_job (handler, routing_key, payload, state, priority, lane, due_at,
                        attempt, claim_no, worker, isolate, progress_note, error, created_at,
                        started_at, finished_at, cancel_requested, done_on, flow_id, flow_name)
  SELECT 'test.log', '', '{{}}', 'completed', 1, '', now(), 1, 1, 'w', false, '', '', now(), now(),
         now(), false, (now() AT TIME ZONE 'UTC')::date, flow.id, 'parent-' || g
  FROM flow, generate_series(1, 10000) g RETURNING id, flow_id
), child AS (
  INSERT INTO tailrace_jobs_job (handler, routing_key, payload, state, priority, lane, due_at,
                        attempt, claim_no, worker, isolate, progress_note, error, created_at,
                        cancel_requested, flow_id, flow_name, after_id)
  SELECT 'test.batch', '', '{{}}', 'waiting', 1, '', now(), 0, 0, '', false, '', '', now(), false,
         max(flow_id), 'callback', max(id) FROM parent RETURNING id
)
INSERT INTO tailrace_jobs_dependency (job_id, parent_id, need, position)
SELECT child.id, parent.id, 'success', row_number() OVER () FROM child, parent;

INSERT INTO tailrace_jobs_dependency (job_id, parent_id, need, position)
SELECT 10 ^ 9 + g / 10, 10 ^ 9 + g, 'success', g % 10 FROM generate_series(1, 200000) g;
"""
