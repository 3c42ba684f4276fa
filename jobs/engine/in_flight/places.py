"""Jobs that were claimed beyond the places of their destination: postponed, and brought forward."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from random import uniform

from tailrace.db import clock
from tailrace.db.arrays import number_array
from tailrace.db.plans import probe, unindexed
from tailrace.db.query import query
from tailrace.jobs.engine.run.verdict import Verdict, postponed
from tailrace.jobs.handler import ClaimedJob

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


# By its claim number a job that was claimed by others since is left alone.
_BRING_FORWARD = f"""
UPDATE tailrace_jobs_live j SET due_at = least(j.due_at, {clock.NOW})
FROM (
  SELECT j.id FROM unnest(%(ids)s::bigint[], %(claim_nos)s::int[]) AS mine (id, claim_no),
    tailrace_jobs_live j
  WHERE {probe("j.id", "mine.id")} AND j.claim_no = mine.claim_no
    AND {unindexed("j.state")} = 'pending'
  ORDER BY j.id FOR NO KEY UPDATE OF j SKIP LOCKED
) free
WHERE {probe("j.id", "free.id")}
RETURNING j.id
"""


class PostponedJobs:
    """The jobs of one queue that this process has postponed, by destination, in their order."""

    def __init__(self) -> None:
        self._jobs: defaultdict[str, dict[int, int]] = defaultdict(dict)
        """Of each job the number of the claim that postponed it."""

    def add(self, destination: str, job: ClaimedJob) -> None:
        known = self._jobs[destination]
        known.pop(job.id, None)
        if len(known) < MOST_KNOWN:
            known[job.id] = job.claim_no

    def bring_forward(self, destinations: Iterable[str]) -> None:
        """Make due one job for each of these places that are free now, as far as any is known that
        nobody has claimed since: else the places stay free until a job's time has come."""
        free, at_once = Counter(destinations), 1
        while taken := list(self._take({name: n * at_once for name, n in free.items()})):
            rows = query(
                _BRING_FORWARD,
                ids=number_array(id for _name, id, _claim_no in taken),
                claim_nos=number_array(claim_no for _name, _id, claim_no in taken),
            )
            due = {id for (id,) in rows}
            free -= Counter(name for name, id, _claim_no in taken if id in due)
            at_once *= 2

    def _take(self, counts: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
        """Forget so many jobs per destination; yield the destination, id and claim of each."""
        for name, count in counts.items():
            known = self._jobs.get(name, {})
            for id in list(islice(known, count)):
                yield name, id, known.pop(id)
            if not known:
                self._jobs.pop(name, None)
