"""Jobs that were claimed while `per_destination` calls to their destination were in flight: they
are postponed, and made due earlier when such a call ends."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from random import uniform

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array
from tailrace.db.sql.plans import probe, unindexed
from tailrace.jobs.engine.run.verdict import Verdict, postponed
from tailrace.jobs.handler import ClaimedJob

SHORTEST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds until a postponed job is due again: twice as long after each claim."""
JITTER = 1.5
MOST_KNOWN = 1000
"""Postponed jobs that are remembered per destination. More jobs wait until they are due."""


PUT_OFF = "calls to "
"""The beginning of the reason with which a job is put off."""


def no_place(job: ClaimedJob, destination: str) -> Verdict:
    """Return the verdict on a job that cannot begin because of `per_destination`."""
    wait = min(SHORTEST_WAIT * 2 ** min(job.claim_no - 1, 10), LONGEST_WAIT)
    limit = job.handler.per_destination
    reason = f"{PUT_OFF}{destination!r} in flight in this process have reached the limit of {limit}"
    return postponed(job, reason, wait * uniform(1.0, JITTER))  # noqa: S311


# The claim number excludes jobs that were claimed again since they were postponed.
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
    """The postponed jobs of one queue in this process."""

    def __init__(self) -> None:
        self._jobs: defaultdict[str, dict[int, int]] = defaultdict(dict)
        """By destination and job id, the oldest first: the claim that postponed the job."""

    def add(self, destination: str, job: ClaimedJob) -> None:
        known = self._jobs[destination]
        known.pop(job.id, None)
        if len(known) < MOST_KNOWN:
            known[job.id] = job.claim_no

    def bring_forward(self, destinations: Iterable[str]) -> None:
        """Make one postponed job due for each of these destinations, to which a call has ended; an
        item of `destinations` may be repeated. Jobs that were claimed again since then are
        skipped."""
        free, factor = Counter(destinations), 1
        while jobs := list(self._pop({name: n * factor for name, n in free.items()})):
            rows = query(
                _BRING_FORWARD,
                ids=number_array(id for _name, id, _claim_no in jobs),
                claim_nos=number_array(claim_no for _name, _id, claim_no in jobs),
            )
            due = {id for (id,) in rows}
            free -= Counter(name for name, id, _claim_no in jobs if id in due)
            factor *= 2

    def _pop(self, counts: Mapping[str, int]) -> Iterator[tuple[str, int, int]]:
        """Remove this many jobs per destination; yield destination, id and claim number."""
        for name, count in counts.items():
            known = self._jobs.get(name, {})
            for id in list(islice(known, count)):
                yield name, id, known.pop(id)
            if not known:
                self._jobs.pop(name, None)
