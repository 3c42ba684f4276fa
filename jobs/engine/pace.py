"""How many jobs one claim takes: what can begin soon in this process, by what calls took so far."""

from typing import Any

from tailrace.db.arrays import number_array, text_array
from tailrace.jobs.handler import Handler

CLAIM_SECONDS = 0.05
"""A claim of jobs that are handled one by one takes about so much work. Slow calls come one to a
claim, so that other workers can begin the rest at once."""
MOST_JOBS = 50
"""In one claim, however fast their calls are."""
WEIGHT = 0.2
"""Of the newest call in the moving average."""

_seconds: dict[str, float] = {}
"""Per handler, the moving average of its calls in this process."""


def claim_size(handler: Handler) -> int:
    """Return how many jobs the next claim takes, at least 1: a batch, or what takes CLAIM_SECONDS.

    One at a time while no call of the handler is known, and for a handler without a second attempt:
    if its worker is lost, it must be clear which job had begun.
    """
    if handler.in_batches():
        return largest_batch(handler)
    seconds = _seconds.get(handler.name)
    if seconds is None or handler.max_attempts == 1:
        return 1
    return int(min(max(CLAIM_SECONDS / max(seconds, 1e-6), 1), MOST_JOBS))


def largest_claim(handler: Handler) -> int:
    """Return how many jobs a claim of any process takes at most."""
    if handler.is_async():
        return handler.concurrency
    return largest_batch(handler) if handler.in_batches() else MOST_JOBS


def largest_batch(handler: Handler) -> int:
    """Return how many jobs a batch has at most, of whichever lane."""
    return max(handler.batch_size, *handler.batch_sizes().values(), 1)


def is_full(handler: Handler, lane: str, jobs: int, count: int) -> bool:
    """Return whether a claim of up to `count` jobs, whose first is of this lane, has all that one
    claim takes; then there may be more."""
    if handler.in_batches_by_lane():
        count = min(count, handler.batch_sizes().get(lane, handler.batch_size))
    return jobs >= count


def lane_sizes(handler: Handler) -> dict[str, Any]:
    """Return the sizes of batches by lane, as parameters of CLAIM_ONE_LANE."""
    sizes = handler.batch_sizes()
    return {
        "lanes": text_array(sizes),
        "sizes": number_array(sizes.values()),
        "other_lanes": handler.batch_size,
    }


def record(handler: Handler, seconds: float) -> None:
    """Take note of how long one call took."""
    average = _seconds.get(handler.name, seconds)
    _seconds[handler.name] = average + (seconds - average) * WEIGHT
