"""Settle the ended jobs of a claim, also while a later call of the claim runs."""

import threading
from collections.abc import Iterable

from tailrace.jobs.engine import totals
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling.settle import settle


class EndedJobs:
    """The ended jobs of one claim that are not settled or not reported yet.

    The thread that runs the jobs of the claim adds and settles them in groups. During a slow call,
    the thread that watches the claim settles the jobs that ended before.
    """

    def __init__(self) -> None:
        self._settling = threading.Lock()
        self._lock = threading.Lock()
        self._ended: list[Verdict] = []
        self._settled: list[tuple[Verdict, str]] = []

    def add(self, verdicts: Iterable[Verdict]) -> None:
        """Keep verdicts until they are settled."""
        with self._lock:
            self._ended += verdicts

    def settle(self) -> list[tuple[Verdict, str]]:
        """Settle the ended jobs. Return the verdicts that were settled since the last call, each
        with the state of its job. Jobs whose claim was lost are left out."""
        with self._settling:
            self._settle()
        with self._lock:
            settled, self._settled = self._settled, []
            return settled

    def settle_behind_slow_call(self) -> None:
        """Settle the jobs that ended before the running call. If the worker is killed during the
        call, these jobs do not run again.

        It does not wait for other threads. The thread that runs the jobs settles them later if it
        is not possible now.
        """
        if not self._settling.acquire(blocking=False):
            return
        try:
            self._settle(tries=1)
            totals.write_soon()  # also the counts of the drain, which it would write after the call
        finally:
            self._settling.release()

    def _settle(self, tries: int | None = None) -> None:
        states: dict[int, str] = {}
        with self._lock:
            ended, self._ended = self._ended, []
        try:
            settle(ended, tries, states)
        except BaseException:
            if tries is not None:
                self.add(verdict for verdict in ended if verdict.job.id not in states)
            raise
        finally:
            with self._lock:
                self._settled += [(v, states[v.job.id]) for v in ended if v.job.id in states]
