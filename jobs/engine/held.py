"""The jobs of one claim in this process: which wait for their call, have begun, or have ended."""

import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from jobs.handler import ClaimedJob, Handler

if TYPE_CHECKING:  # the package of verdicts works with held claims
    from jobs.engine.run.verdict import Verdict


class HeldClaim:
    """The jobs of one claim while they are worked on.

    The thread that runs them takes them with `begin_next` or `begin_all`; the thread that watches
    the claim may take those that wait, to give them back, and those that have ended, to settle
    them.
    """

    def __init__(self, handler: Handler, jobs: Sequence[ClaimedJob]) -> None:
        self.handler = handler
        self.jobs = jobs
        self.began_at = time.monotonic()
        """When the call that runs began."""
        self.recorded = handler.in_batches() or len(jobs) == 1
        """Whether the database knows of the jobs that run that they have begun."""
        self._lock = threading.Lock()
        self._waiting = deque(jobs)
        self._running: Sequence[ClaimedJob] = ()
        self.settling = threading.Lock()
        """Whoever settles what has ended holds it."""
        self._ended: list[Verdict] = []
        self._settled: list[tuple[Verdict, str]] = []

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

    def add_ended(self, *verdicts: "Verdict") -> None:
        """Keep verdicts until they are settled."""
        with self._lock:
            self._ended += verdicts

    def take_ended(self) -> "list[Verdict]":
        """Return the verdicts that are not settled yet, to settle them."""
        with self._lock:
            ended, self._ended = self._ended, []
            return ended

    def add_settled(self, settled: "Iterable[tuple[Verdict, str]]") -> None:
        """Keep verdicts and the states of their jobs until they are reported and counted."""
        with self._lock:
            self._settled += settled

    def take_settled(self) -> "list[tuple[Verdict, str]]":
        """Return what was settled since the last time, each with the state of its job."""
        with self._lock:
            settled, self._settled = self._settled, []
            return settled
