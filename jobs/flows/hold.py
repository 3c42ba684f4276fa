"""Hold back the jobs of a paused flow."""

from tailrace.db.query import execute

# A flow that is resumed meanwhile decides the jobs that it sees: a job that is held back after that
# would wait for ever. So the flow is locked, or nothing is held back now. A locked job is being
# claimed or changed; if it stays pending, the sweeper holds it back.
_HOLD = """
WITH paused AS MATERIALIZED (
  SELECT id FROM tailrace_jobs_flow WHERE id = %(flow)s AND paused_at IS NOT NULL
  FOR SHARE SKIP LOCKED
)
UPDATE tailrace_jobs_live SET state = 'waiting' WHERE id = ANY(ARRAY(
  SELECT j.id FROM paused JOIN tailrace_jobs_live j ON j.flow_id = paused.id
  WHERE j.state = 'pending' ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED))
"""


def hold(flow: int) -> int:
    """Make the pending jobs of a paused flow wait; return how many."""
    return execute(_HOLD, flow=flow)
