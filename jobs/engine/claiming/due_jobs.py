"""SQL that counts the due jobs of a queue at a bounded cost."""

from tailrace.db import clock
from tailrace.jobs.engine.claiming.claim_sql import PRIORITIES

# Each priority is counted separately, along the index of the due jobs.
DUE_JOBS = f"""(SELECT count(*) FROM (
  SELECT 1 FROM (VALUES {PRIORITIES}) p (priority), LATERAL (
    SELECT 1 FROM tailrace_jobs_live WHERE handler = q.name AND state = 'pending'
      AND priority = p.priority AND due_at <= {clock.NOW} LIMIT %(cap)s) job
  LIMIT %(cap)s) capped)"""
"""The number of due jobs of the queue `q`, up to %(cap)s."""
