"""Give jobs back to the queue if their call has not begun while another call of the claim runs."""

from collections.abc import Sequence

from tailrace.db.query import execute
from tailrace.db.sql.arrays import arrays
from tailrace.db.sql.plans import probe, unindexed
from tailrace.jobs.engine.leases.held import HeldClaim
from tailrace.jobs.engine.run.failure import interrupted
from tailrace.jobs.engine.run.verdict import handed_back
from tailrace.jobs.engine.settling.settle import settle
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.handler import ClaimedJob

# If a crash loses this write, no attempt is counted, as if the call had not begun.
_BEGUN = f"""
WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
UPDATE tailrace_jobs_live j SET begun = true, call_after = mine.call_after
FROM unnest(%(id)s::bigint[], %(claim_no)s::int[], %(worker)s::text[], %(call_after)s::real[])
  AS mine (id, claim_no, worker, call_after), quick
WHERE {probe("j.id", "mine.id")} AND {unindexed("j.state")} = 'running'
  AND j.claim_no = mine.claim_no AND j.worker = mine.worker
"""


def give_back_waiting(held: HeldClaim) -> int:
    """Make the waiting jobs of this claim pending again, without a counted attempt, and wake their
    queue. Return the number of jobs. The running call is recorded as begun."""
    if not held.recorded and (running := held.running()):
        record_begun(running)
        held.recorded = True
    waiting = held.take_waiting()
    if waiting:
        settle([handed_back(job) for job in waiting], tries=1)
        wake.wake([held.handler.name])
    return len(waiting)


def give_back_running(held: HeldClaim) -> None:
    """Make the jobs of the running call pending again. Jobs whose call has ended are settled: a
    thread that waits for the database may not have done it, and they would run again."""
    ended = held.ended.unsettled()
    settle(ended, tries=1)
    ids = {verdict.job.id for verdict in ended}
    settle([interrupted(job) for job in held.running() if job.id not in ids], tries=1)
    wake.wake([held.handler.name])


def record_begun(jobs: Sequence[ClaimedJob]) -> None:
    numbers = ("id", "claim_no", "call_after")
    execute(_BEGUN, **arrays(jobs, ("worker", *numbers), numbers))
