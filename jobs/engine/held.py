"""The jobs of one claim in this process: which wait for their call, and which have begun."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from tailrace.jobs.handler import ClaimedJob, Handler


class HeldClaim:
    """The jobs of one claim while they are worked on.

    The thread that runs them takes them with `begin_next` or `begin_all`; the thread that watches
    the claim may take those that wait, to give them back. While a call is slow it also calls
    `settle_ended`, time and again.
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
        """When the call that runs began."""
        self.recorded = handler.in_batches() or len(jobs) == 1
        """Whether the database knows of the jobs that run that they have begun."""
        self._lock = threading.Lock()
        self._waiting = deque(jobs)
        self._running: Sequence[ClaimedJob] = ()

    def begin_next(self) -> ClaimedJob | None:
        """Return the next job, whose call begins now; None if none waits any more."""
        with self._lock:
            self._running = (self._waiting.popleft(),) if self._waiting else ()
            self.began_at = time.monotonic()
            return self._running[0] if self._running else None

    def begin_all(self) -> Sequence[ClaimedJob]:
        """Return all jobs, whose one call begins now."""
        with self._lock:
            self._waiting.clear()
            self._running, self.began_at = self.jobs, time.monotonic()
            return self._running

    def take_waiting(self) -> list[ClaimedJob]:
        """Return the jobs that have not begun, and never will in this claim."""
        with self._lock:
            waiting = list(self._waiting)
            self._waiting.clear()
            return waiting

    def running(self) -> Sequence[ClaimedJob]:
        """Return the jobs of the call that runs; of a batch, also those that are settled."""
        with self._lock:
            return self._running
