"""Lock the jobs of an operation."""

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
