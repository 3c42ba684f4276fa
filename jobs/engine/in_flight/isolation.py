"""A job whose worker was lost while it ran may be what kills workers: it begins alone.

It waits until nothing else of this process is in flight, and nothing is claimed until it has ended:
but for a moment only, so that slow calls whose worker was stopped do not come one after the other.
"""

from collections import deque

from tailrace.jobs.engine.in_flight.call import Call

ALONE_SECONDS = 0.5
"""How long such a job waits for the others at most, and then others for it."""


class Isolation:
    """The job of this process that begins alone, and since when. Of the engine's thread alone."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Call, float]] = deque()
        self._began: tuple[Call, float] | None = None

    def add(self, call: Call, now: float) -> None:
        self._waiting.append((call, now))

    def next(self, in_flight: int, now: float) -> list[Call]:
        """Return the job that begins now; `in_flight` counts it, and all others of the process."""
        if not self._waiting or self._is_alone(now):
            return []
        call, since = self._waiting[0]
        if in_flight > len(self._waiting) and now - since < ALONE_SECONDS:
            return []
        self._waiting.popleft()
        self._began = call, now
        return [call]

    def is_on(self, now: float) -> bool:
        """Whether nothing may be claimed now."""
        return bool(self._waiting) or self._is_alone(now)

    def _is_alone(self, now: float) -> bool:
        if self._began is None:
            return False
        call, at = self._began
        return call.verdict is None and now - at < ALONE_SECONDS
