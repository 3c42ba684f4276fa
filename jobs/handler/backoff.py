"""The wait before the next attempt of a job."""

import random


class Backoff:
    """Seconds to wait before the second, third, … attempt. The last value repeats."""

    def __init__(self, *seconds: float, jitter: float = 0.2) -> None:
        self.seconds = seconds or (60.0,)
        self.jitter = jitter

    def after(self, attempt: int) -> float:
        """Return the seconds to wait after attempt number `attempt` has failed; the first is 1."""
        wait = self.seconds[min(max(attempt, 1), len(self.seconds)) - 1]
        return wait * (1 + self.jitter * (2 * random.random() - 1))  # noqa: S311
