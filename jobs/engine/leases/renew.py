"""Renew the leases of claimed jobs."""

from collections.abc import Sequence

from django.db import DatabaseError

from tailrace.db import clock, connections
from tailrace.db.query import execute
from tailrace.db.sql.arrays import arrays
from tailrace.db.sql.plans import probe, unindexed
from tailrace.jobs.handler import ClaimedJob

# A locked row is passed over, so that the other leases are renewed. The job of that row cannot be
# rescued either while the row is locked.
_RENEW = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
free AS MATERIALIZED (
  SELECT j.id
  FROM unnest(%(id)s::bigint[], %(claim_no)s::int[], %(worker)s::text[])
    AS mine (id, claim_no, worker), quick, tailrace_jobs_live j
  WHERE {probe("j.id", "mine.id")} AND j.claim_no = mine.claim_no
    AND {unindexed("j.state")} = 'running' AND j.worker = mine.worker
  FOR NO KEY UPDATE OF j SKIP LOCKED
)
UPDATE tailrace_jobs_live j SET lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
FROM free WHERE {probe("j.id", "free.id")}
"""

LOCK_SECONDS = 0.1
# For a single job, the usual case of long jobs. Without FOR UPDATE it writes a third less WAL.
_RENEW_ONE = f"""
WITH quick AS MATERIALIZED (
  SELECT set_config('synchronous_commit', 'off', true), set_config('lock_timeout', %(wait)s, true)
)
UPDATE tailrace_jobs_live j SET lease_until = {clock.NOW} + make_interval(secs => %(lease)s)
FROM quick
WHERE j.id = %(id)s AND j.claim_no = %(claim_no)s AND {unindexed("j.state")} = 'running'
  AND j.worker = %(worker)s
"""


def renew(jobs: Sequence[ClaimedJob]) -> int:
    """Renew the leases of these jobs of one handler, without lost claims and locked rows; return
    the number of renewed leases."""
    if len(jobs) == 1:
        return _renew_one(jobs[0])
    claims = arrays(jobs, ("id", "claim_no", "worker"), ("id", "claim_no"))
    return execute(_RENEW, lease=jobs[0].handler.claim_timeout, **claims)


def _renew_one(job: ClaimedJob) -> int:
    try:
        return execute(
            _RENEW_ONE,
            lease=job.handler.claim_timeout,
            wait=f"{int(LOCK_SECONDS * 1000)}ms",
            id=job.id,
            claim_no=job.claim_no,
            worker=job.worker,
        )
    except DatabaseError as error:
        if connections.timed_out(error):
            return 0
        raise
