"""How many jobs one claim takes: what can begin soon in this process, by what calls took so far."""

from jobs.handler import Handler

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
        return handler.batch_size
    seconds = _seconds.get(handler.name)
    if seconds is None or handler.max_attempts == 1:
        return 1
    return int(min(max(CLAIM_SECONDS / max(seconds, 1e-6), 1), MOST_JOBS))


def largest_claim(handler: Handler) -> int:
    """Return how many jobs a claim of any process takes at most."""
    if handler.is_async():
        return handler.concurrency
    return handler.batch_size if handler.in_batches() else MOST_JOBS


def record(handler: Handler, seconds: float) -> None:
    """Take note of how long one call took."""
    average = _seconds.get(handler.name, seconds)
    _seconds[handler.name] = average + (seconds - average) * WEIGHT
