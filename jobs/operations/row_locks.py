"""Lock the jobs of an operation, and their paused flows."""

from collections.abc import Sequence

from tailrace.db import locks
from tailrace.db.query import query

_LOCK = f"""
WITH {locks.LIMITED},
locked AS MATERIALIZED (
  SELECT j.id FROM limited, tailrace_jobs_job j WHERE j.id = ANY(%(ids)s)
  ORDER BY j.id FOR NO KEY UPDATE OF j
), {locks.restored("locked")}
SELECT locked.id FROM restored, locked
"""


def lock(ids: Sequence[int]) -> None:
    """Lock the rows of these jobs, ordered by id, until the caller's transaction ends.

    Raises Blocked if another transaction locks one of them for more than ten seconds.
    """
    with locks.named(lambda: f"the rows of {len(ids)} jobs from {min(ids)} to {max(ids)}"):
        query(_LOCK, ids=list(ids), **locks.params())


_LOCK_PAUSED_FLOWS = f"""
WITH {locks.LIMITED},
locked AS MATERIALIZED (
  SELECT f.id FROM limited, tailrace_jobs_flow f
  WHERE f.paused_at IS NOT NULL AND f.id = ANY(ARRAY(
    SELECT flow_id FROM tailrace_jobs_job WHERE id = ANY(%(ids)s) AND flow_id IS NOT NULL))
  ORDER BY f.id FOR SHARE OF f
), {locks.restored("locked")}
SELECT locked.id FROM restored, locked
"""


def lock_paused_flows(ids: Sequence[int]) -> None:
    """Keep the flows of these jobs paused until the caller's transaction ends: a flow that was
    resumed in this time would not decide the jobs that the caller lets wait. Raises Blocked as
    `lock`."""
    with locks.named(lambda: f"the paused flows of {len(ids)} jobs"):
        query(_LOCK_PAUSED_FLOWS, ids=list(ids), **locks.params())
