"""The limits of a queue and of its async handler, and how many more jobs they allow now."""

from dataclasses import dataclass

from tailrace.db.query import query
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming import claim_sql as sql
from tailrace.jobs.engine.waking.activity import newest
from tailrace.jobs.handler import Handler
from tailrace.jobs.models import Job, Queue
from tailrace.jobs.platform.inspection.explain.reasons import Reason, job_count, job_list
from tailrace.jobs.platform.inspection.queues.hanging import hanging_calls

MAX_NAMED_JOBS = 5

_RUNNING = f"""
SELECT count(*), (array_agg(id ORDER BY started_at, id))[1:{MAX_NAMED_JOBS}] FROM tailrace_jobs_live
WHERE {sql.RUNNING}
"""
_TOKENS = f"SELECT {sql.TOKENS} FROM {newest('%(handler)s')} a"


@dataclass(frozen=True, slots=True)
class Limit:
    allowed: int
    """How many jobs a claim may take now."""
    reason: Reason
    """Why a claim may take no more."""


def queue_limits(handler: Handler, queue: Queue) -> list[Limit]:
    limits = []
    if max_running := queue.max_running or handler.max_running:
        ((running, ids),) = query(_RUNNING, handler=handler.name)
        jobs = job_list(ids or (), running)
        words = f"{handler.name} runs at most {max_running} jobs at once; running now: {jobs}."
        reason = Reason("max_running", words, tuple(ids or ()))
        limits.append(Limit(max_running - running, reason))
    if rate := queue.rate_limit or handler.rate_limit:
        rows = query(_TOKENS, handler=handler.name, rate=rate)
        tokens = float(rows[0][0]) if rows else 0.0
        words = f"The rate limit of {handler.name} is {rate:g} jobs per second"
        words += "." if tokens >= 1 else f"; the next job may start in {(1 - tokens) / rate:.1f} s."
        limits.append(Limit(int(tokens // 1), Reason("rate_limit", words)))
    return limits


_COUNT = f"SELECT count(*) FROM tailrace_jobs_live WHERE {sql.RUNNING}"
_COUNT_IN_LANE = f"{_COUNT} AND lane = %(lane)s AND lane <> ''"


def hang_reasons(job: Job) -> list[Reason]:
    """Return a reason if calls hang that the job may wait for, else an empty list."""
    return [
        Reason("calls_hang", f"Calls that it waits for hang: {calls.words}.", tuple(calls.jobs))
        for calls in hanging_calls([job.handler])
        if calls.destination in ("", job.lane, job.routing_key)
    ]


def concurrency_reasons(job: Job) -> list[Reason]:
    """Return the concurrency limits that may delay the job; empty if there are none."""
    handler = registry.get(job.handler)
    reasons: list[Reason] = []
    if not handler.is_async():
        return reasons
    [(running,)] = query(_COUNT, handler=handler.name)
    if running >= handler.concurrency:
        words = (
            f"{job_count(running)} of {handler.name} are in flight, and each worker process runs "
            f"at most {handler.concurrency} of them: the job is claimed when one of them ends."
        )
        reasons.append(Reason("places", words))
    if handler.lanes_are_destinations() and handler.per_destination is not None:
        [(in_lane,)] = query(_COUNT_IN_LANE, handler=handler.name, lane=job.lane)
        if in_lane >= handler.per_destination:
            words = (
                f"{job_count(in_lane)} to {job.lane} are in flight, and a process runs at most "
                f"{handler.per_destination} to one destination."
            )
            reasons.append(Reason("destination_places", words))
    return reasons
