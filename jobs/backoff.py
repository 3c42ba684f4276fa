"""How long a job waits before its next attempt."""

import random


class Backoff:
    """The waits before the second, third, … attempt, in seconds; the last one repeats."""

    def __init__(self, *seconds: float, jitter: float = 0.2) -> None:
        self.seconds = seconds or (60.0,)
        self.jitter = jitter

    def after(self, attempt: int) -> float:
        """Return the wait after the failure of attempt number `attempt` (1 is the first)."""
        wait = self.seconds[min(max(attempt, 1), len(self.seconds)) - 1]
        return wait * (1 + self.jitter * (2 * random.random() - 1))  # noqa: S311
