"""Map the jobs of a batch to their depositions, and skip jobs that have nothing to do."""

from collections.abc import Collection, Mapping, Sequence

from tailrace.db.query import query
from tailrace.db.sql.arrays import number_array
from tailrace.jobs.handler import ClaimedJob

JobOf = Mapping[int, ClaimedJob]


def by_deposition(jobs: Sequence[ClaimedJob]) -> dict[int, ClaimedJob]:
    """Return the jobs by the ids of their depositions."""
    return {int(job.require_event().raw_payload["deposition"]): job for job in jobs}


_STATES = "SELECT id, state FROM tailrace_records_deposition WHERE id = ANY(%(ids)s::bigint[])"


def skip_unchanged(
    job_of: JobOf, changed: Collection[int], waiting: Mapping[str, str] = {}
) -> None:
    """Skip the jobs whose depositions are not in `changed`, the ids that this batch changed.

    The reason of a skipped job names the deposition's state, unless `waiting` has another reason
    for this state.
    """
    unchanged = job_of.keys() - set(changed)
    if not unchanged:
        return
    state_of = dict(query(_STATES, ids=number_array(unchanged)))
    for id in unchanged:
        state = state_of.get(id)
        if state is None:
            job_of[id].skip("the deposition was deleted")
        else:
            job_of[id].skip(waiting.get(state, f"the deposition is already {state}"))
