"""The memory of a worker in each of the last minutes, which its heartbeat reports."""

from collections import deque

MINUTES = 60


class MemoryMinutes:
    """The largest memory in each of the last MINUTES of this process, oldest first, in MB."""

    def __init__(self) -> None:
        self._values: deque[int] = deque(maxlen=MINUTES)
        self._minute = 0

    def add(self, size: int, seconds: float) -> None:
        """Add a memory in bytes at a time of a monotonic clock."""
        number, minute = size // 1024**2, int(seconds // 60)
        if not self._values:
            self._minute = minute
            self._values.append(number)
            return
        for _ in range(min(minute - self._minute, MINUTES)):
            self._values.append(number)  # also for minutes in which it did not run
        self._minute = max(minute, self._minute)
        self._values[-1] = max(self._values[-1], number)

    def values(self) -> list[int]:
        return list(self._values)
