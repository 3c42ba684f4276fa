"""The number of jobs per claim: as many as can begin soon in this process, by the duration of
earlier calls."""

from typing import Any

from tailrace.db.sql.arrays import number_array, text_array
from tailrace.jobs.handler import Handler

CLAIM_SECONDS = 0.05
"""A claim takes jobs for about this much work, if the jobs are handled one by one. If calls are
slow, it takes one job, so that other workers can begin the other jobs at once."""
MOST_JOBS = 50
"""Maximum number of jobs in one claim."""
WEIGHT = 0.2
"""The weight of the newest call in the moving average."""

_seconds: dict[str, float] = {}
"""The moving average of the duration of calls in this process, by handler."""


def claim_size(handler: Handler) -> int:
    """Return the maximum number of jobs of the next claim, at least 1: a batch, or jobs that take
    about CLAIM_SECONDS together. It is 1 before the first call of the handler, and for a handler
    with one attempt only: if the worker is lost, it must be clear which job had begun."""
    if handler.in_batches():
        return largest_batch(handler)
    seconds = _seconds.get(handler.name)
    if seconds is None or handler.max_attempts == 1 or handler.one_job_per_drain:
        return 1
    return int(min(max(CLAIM_SECONDS / max(seconds, 1e-6), 1), MOST_JOBS))


def largest_claim(handler: Handler) -> int:
    """Return the maximum number of jobs that a claim of any process takes."""
    if handler.is_async():
        return handler.concurrency
    return largest_batch(handler) if handler.in_batches() else MOST_JOBS


def largest_batch(handler: Handler) -> int:
    return max(handler.batch_size, *handler.batch_sizes().values(), 1)


def is_full(handler: Handler, lane: str, jobs: int, count: int) -> bool:
    """Return whether a claim of up to `count` jobs that returned `jobs` jobs is full, so that more
    jobs may be due. `lane` is the lane of the first job."""
    if handler.in_batches_by_lane():
        count = min(count, handler.batch_sizes().get(lane, handler.batch_size))
    return jobs >= count


def lane_sizes(handler: Handler) -> dict[str, Any]:
    sizes = handler.batch_sizes()
    return {
        "lanes": text_array(sizes),
        "sizes": number_array(sizes.values()),
        "other_lanes": handler.batch_size,
    }


def record(handler: Handler, seconds: float) -> None:
    average = _seconds.get(handler.name, seconds)
    _seconds[handler.name] = average + (seconds - average) * WEIGHT
