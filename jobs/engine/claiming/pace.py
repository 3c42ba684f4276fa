"""The number of jobs per claim: as many as can begin soon in this process, by the duration of
earlier calls, claims and settlements."""

from tailrace.jobs.handler import Handler

CLAIM_SECONDS = 0.05
"""A claim takes jobs for about this much work, if the jobs are handled one by one. If calls are
slow, it takes one job, so that other workers can begin the other jobs at once."""
FAR_CLAIM_SECONDS = 0.5
"""If the database is far away, a claim takes jobs for three times as long as the claim and its
settlement take, but for at most this much work."""
MOST_JOBS = 50
"""Maximum number of jobs in a claim for CLAIM_SECONDS, and in proportion for more."""
QUICK_SECONDS = 0.01
"""A call that takes at most this long delays no other job that would not be claimed before it."""
WEIGHT, WEIGHT_OF_LESS = 0.2, 0.5
"""The weight of the newest time in a moving average, and the weight if it is below the average: the
first call, claim or settlement of a process often connects to the database."""

_seconds: dict[str, float] = {}
"""The moving average of the duration of calls in this process, by handler."""
_costs: dict[tuple[str, str], float] = {}
"""The same of claims and of settlements, by handler and by `claim` or `settle`."""


def claim_size(handler: Handler) -> int:
    """Return the maximum number of jobs of the next claim, at least 1: a batch, or jobs that take
    about `claim_seconds` together. It is 1 before the first call of the handler, and for a handler
    with one attempt only: if the worker is lost, it must be clear which job had begun."""
    if handler.in_batches():
        return largest_batch(handler)
    seconds = _seconds.get(handler.name)
    if seconds is None or handler.max_attempts == 1 or handler.one_job_per_drain:
        return 1
    work = claim_seconds(handler)
    return int(max(min(work / max(seconds, 1e-6), MOST_JOBS * work / CLAIM_SECONDS), 1))


def is_quick(handler: Handler) -> bool:
    """Return whether calls of this handler, which has neither lanes nor limits, have taken at most
    QUICK_SECONDS."""
    if handler.in_lanes() or handler.max_running or handler.rate_limit:
        return False
    return _seconds.get(handler.name, QUICK_SECONDS + 1) <= QUICK_SECONDS


def claim_seconds(handler: Handler) -> float:
    """Return how much work a claim of this handler takes."""
    cost = sum(_costs.get((handler.name, what), 0.0) for what in ("claim", "settle"))
    return max(CLAIM_SECONDS, min(3 * cost, FAR_CLAIM_SECONDS))


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
    if handler.in_batches_by_key():
        size = handler.batch_sizes().get(lane.rpartition("/")[2], handler.batch_size)
        count = min(count, size)
    return jobs >= count


def record(handler: Handler, seconds: float) -> None:
    """Record how long a call took."""
    _seconds[handler.name] = _average(_seconds.get(handler.name), seconds)


def record_cost(handler: Handler, what: str, seconds: float) -> None:
    """Record how long a claim or a settlement took; `what`: `claim` or `settle`."""
    _costs[handler.name, what] = _average(_costs.get((handler.name, what)), seconds)


def _average(before: float | None, seconds: float) -> float:
    if before is None:
        return seconds
    return before + (seconds - before) * (WEIGHT_OF_LESS if seconds < before else WEIGHT)
