"""Isolate jobs whose worker was lost while they ran, since such a job may kill workers.

An isolated job begins when no other call of this process is in flight, and no jobs are claimed
until it has ended. Both waits are limited to ALONE_SECONDS, so that slow calls whose worker was
stopped for another reason do not run one after the other.
"""

from collections import deque

from tailrace.jobs.engine.in_flight.call import Call

ALONE_SECONDS = 0.5
"""Maximum time that an isolated job waits for other calls, and that claims then wait for it."""


class Isolation:
    """The isolated jobs of this process: the waiting ones, and the one that began last. Used by the
    engine thread."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Call, float]] = deque()
        self._began: tuple[Call, float] | None = None

    def add(self, call: Call, now: float) -> None:
        self._waiting.append((call, now))

    def next(self, in_flight: int, now: float) -> list[Call]:
        """Return the isolated job that may begin now, if any. `in_flight` is the number of all
        calls of the process, including the waiting ones."""
        if not self._waiting or self._is_alone(now):
            return []
        call, since = self._waiting[0]
        if in_flight > len(self._waiting) and now - since < ALONE_SECONDS:
            return []
        self._waiting.popleft()
        self._began = call, now
        return [call]

    def is_on(self, now: float) -> bool:
        """Whether claims must wait for an isolated job."""
        return bool(self._waiting) or self._is_alone(now)

    def _is_alone(self, now: float) -> bool:
        if self._began is None:
            return False
        call, at = self._began
        return call.verdict is None and now - at < ALONE_SECONDS
