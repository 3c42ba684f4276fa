"""The jobs of a batch by the deposition that their events are about."""

from collections.abc import Collection, Mapping, Sequence

from tailrace.db.arrays import number_array
from tailrace.db.query import query
from tailrace.jobs.handler import ClaimedJob

JobOf = Mapping[int, ClaimedJob]


def by_deposition(jobs: Sequence[ClaimedJob]) -> dict[int, ClaimedJob]:
    """Return the jobs by the ids of their depositions; jobs whose event is gone fail."""
    job_of = {}
    for job in jobs:
        if job.event is None:
            job.fail("its event no longer exists")
        else:
            job_of[int(job.event.raw_payload["deposition"])] = job
    return job_of


_STATES = "SELECT id, state FROM tailrace_records_deposition WHERE id = ANY(%(ids)s::bigint[])"


def skip_others(job_of: JobOf, changed: Collection[int], waiting: Mapping[str, str] = {}) -> None:
    """Skip the jobs whose depositions this batch did not change, with the reason. `waiting` has
    reasons for states."""
    others = job_of.keys() - set(changed)
    if not others:
        return
    state_of = dict(query(_STATES, ids=number_array(others)))
    for id in others:
        state = state_of.get(id)
        if state is None:
            job_of[id].skip("the deposition is gone")
        else:
            job_of[id].skip(waiting.get(state, f"the deposition is {state} already"))
