"""The concurrency limits of async handlers, as reasons why a job waits."""

from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import claim_sql as sql
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.explain.reasons import Reason, job_count

_RUNNING = f"SELECT count(*) FROM tailrace_jobs_live WHERE {sql.RUNNING}"
_RUNNING_IN_LANE = f"{_RUNNING} AND lane = %(lane)s AND lane <> ''"


def concurrency_reasons(job: Job) -> list[Reason]:
    """Return the concurrency limits that may delay the job; empty if there are none."""
    handler = registry.get(job.handler)
    reasons: list[Reason] = []
    if not handler.is_async():
        return reasons
    [(running,)] = query(_RUNNING, handler=handler.name)
    if running >= handler.concurrency:
        words = (
            f"{job_count(running)} of {handler.name} are in flight, and each worker process runs "
            f"at most {handler.concurrency} of them: the job is claimed when one of them ends."
        )
        reasons.append(Reason("places", words))
    if handler.lanes_are_destinations() and handler.per_destination is not None:
        [(in_lane,)] = query(_RUNNING_IN_LANE, handler=handler.name, lane=job.lane)
        if in_lane >= handler.per_destination:
            words = (
                f"{job_count(in_lane)} to {job.lane} are in flight, and a process runs at most "
                f"{handler.per_destination} to one destination."
            )
            reasons.append(Reason("destination_places", words))
    return reasons
