"""The waiting and the running jobs of one claim of this process."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from tailrace.jobs.handler import ClaimedJob, Handler


class HeldClaim:
    """The jobs of one claim until all of them have ended.

    The thread that runs the jobs takes them with `begin_next` or `begin_all`. The thread that
    watches the claim may take the waiting jobs to give them back; during a slow call it also calls
    `settle_ended` repeatedly.
    """

    def __init__(
        self,
        handler: Handler,
        jobs: Sequence[ClaimedJob],
        settle_ended: Callable[[], None] = lambda: None,
    ) -> None:
        self.handler = handler
        self.jobs = jobs
        self.settle_ended = settle_ended
        self.began_at = time.monotonic()
        """When the running call began."""
        self.recorded = handler.in_batches() or len(jobs) == 1
        """Whether the running jobs are recorded as begun in the database."""
        self._lock = threading.Lock()
        self._waiting = deque(jobs)
        self._running: Sequence[ClaimedJob] = ()

    def begin_next(self) -> ClaimedJob | None:
        """Return the next waiting job, whose call begins now, or None."""
        with self._lock:
            self._running = (self._waiting.popleft(),) if self._waiting else ()
            self.began_at = time.monotonic()
            return self._running[0] if self._running else None

    def begin_all(self) -> Sequence[ClaimedJob]:
        """Return all jobs of the claim: one call for all of them begins now."""
        with self._lock:
            self._waiting.clear()
            self._running, self.began_at = self.jobs, time.monotonic()
            return self._running

    def take_waiting(self) -> list[ClaimedJob]:
        """Remove the jobs whose call has not begun from the claim, and return them."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
            return waiting

    def running(self) -> Sequence[ClaimedJob]:
        """Return the jobs of the running call; of a batch also the settled jobs."""
        with self._lock:
            return self._running
