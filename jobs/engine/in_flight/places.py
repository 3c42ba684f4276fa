"""Jobs that were claimed beyond the places of their destination: postponed, and brought forward."""

from collections import defaultdict, deque
from collections.abc import Iterable
from random import uniform

from db import clock
from db.arrays import number_array
from db.plans import probe, unindexed
from db.query import execute
from jobs.engine.run.verdict import Verdict, postponed
from jobs.handler import ClaimedJob

SHORTEST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds until such a job is due again: twice as long each time it was claimed."""
JITTER = 1.5
MOST_KNOWN = 1000
"""Postponed jobs that are remembered per destination; others wait for their time."""


def no_place(job: ClaimedJob, destination: str) -> Verdict:
    """Return the verdict on a job whose destination has all its places taken."""
    wait = min(SHORTEST_WAIT * 2 ** min(job.claim_no - 1, 10), LONGEST_WAIT)
    reason = f"all {job.handler.per_destination} places of {destination!r} are taken"
    return postponed(job, reason, wait * uniform(1.0, JITTER))  # noqa: S311


# In the order of their claim numbers a job that was claimed by others since is left alone.
_BRING_FORWARD = f"""
UPDATE jobs_live j SET due_at = {clock.NOW}
FROM (
  SELECT j.id FROM unnest(%(ids)s::bigint[], %(claim_nos)s::int[]) AS mine (id, claim_no),
    jobs_live j
  WHERE {probe("j.id", "mine.id")} AND j.claim_no = mine.claim_no
    AND {unindexed("j.state")} = 'pending' AND j.due_at > {clock.NOW}
  ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
) free
WHERE {probe("j.id", "free.id")}
"""


class PostponedJobs:
    """The jobs of one queue that this process has postponed, by destination, in their order."""

    def __init__(self) -> None:
        self._jobs: defaultdict[str, deque[tuple[int, int]]]
        self._jobs = defaultdict(lambda: deque(maxlen=MOST_KNOWN))

    def add(self, destination: str, job: ClaimedJob) -> None:
        known = self._jobs[destination]
        if len(known) < MOST_KNOWN:
            known.append((job.id, job.claim_no))

    def bring_forward(self, destinations: Iterable[str]) -> None:
        """Make due one job for each of these places that are free now."""
        jobs = []
        for destination in destinations:
            if known := self._jobs.get(destination):
                jobs.append(known.popleft())
                if not known:
                    del self._jobs[destination]
        if jobs:
            execute(
                _BRING_FORWARD,
                ids=number_array(id for id, _claim_no in jobs),
                claim_nos=number_array(claim_no for _id, claim_no in jobs),
            )
