"""The jobs of one claim of this process: the waiting, the running and the ended jobs."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence

from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling.settle import settle
from tailrace.jobs.handler import ClaimedJob, Handler


class HeldClaim:
    """The jobs of one claim until all of them have ended.

    The thread that runs them takes them with `begin_next` or `begin_group`. The thread that watches
    the claim may take the waiting jobs; during a slow call it also settles the ended jobs.
    """

    def __init__(
        self, handler: Handler, jobs: Sequence[ClaimedJob], ended: "EndedJobs | None" = None
    ) -> None:
        self.handler, self.jobs = handler, jobs
        self.ended = ended or EndedJobs()
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

    def begin_group(
        self, choose: Callable[[Sequence[ClaimedJob]], Sequence[ClaimedJob]]
    ) -> Sequence[ClaimedJob]:
        """Return the jobs that `choose` selects from the waiting jobs. Their call begins now."""
        with self._lock:
            self._running, self.began_at = choose(self._waiting), time.monotonic()
            self._waiting = deque(job for job in self._waiting if job not in self._running)
            return self._running

    def put_back(self, jobs: Iterable[ClaimedJob]) -> None:
        """Make these jobs of the last call waiting jobs again."""
        with self._lock:
            self._waiting += jobs

    def take_waiting(self) -> list[ClaimedJob]:
        """Remove the jobs whose call has not begun from the claim, and return them."""
        with self._lock:
            waiting, self._waiting = list(self._waiting), deque()
            return waiting

    def running(self) -> Sequence[ClaimedJob]:
        """Return the jobs of the running call."""
        with self._lock:
            return self._running


class EndedJobs:
    """The ended jobs of one claim that are not settled or not reported yet. The thread that runs
    the jobs settles them in groups; during a slow call, the thread that watches the claim does."""

    def __init__(self) -> None:
        self._settling = threading.Lock()
        self._lock = threading.Lock()
        self._ended: list[Verdict] = []
        self._settled: list[tuple[Verdict, str]] = []

    def add(self, verdicts: Iterable[Verdict]) -> None:
        with self._lock:
            self._ended += verdicts

    def settle(self) -> list[tuple[Verdict, str]]:
        """Settle the ended jobs. Return what was settled since the last call, without lost claims:
        the verdicts with the states of their jobs."""
        with self._settling:
            self._settle()
        with self._lock:
            settled, self._settled = self._settled, []
            return settled

    def unsettled(self) -> list[Verdict]:
        """Return the verdicts that are not settled, also those that a thread tries to settle."""
        with self._lock:
            return list(self._ended)

    def settle_behind_slow_call(self) -> None:
        """Settle the jobs that ended before the running call, so that they do not run again if it
        kills the worker. It does not wait for other threads: what is left is settled later."""
        if not self._settling.acquire(blocking=False):
            return
        try:
            self._settle(tries=1)
            totals.write_soon()  # also the counts of the drain, which it would write after the call
        finally:
            self._settling.release()

    def _settle(self, tries: int | None = None) -> None:
        states: dict[int, str] = {}
        ended = self.unsettled()
        try:
            settle(ended, tries, states)
        except BaseException:
            if tries is not None:
                self.add(verdict for verdict in ended if verdict.job.id not in states)
            raise
        finally:
            with self._lock:
                self._ended = self._ended[len(ended) :]
                self._settled += [(v, states[v.job.id]) for v in ended if v.job.id in states]
