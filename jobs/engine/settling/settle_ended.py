"""Settle the jobs of a claim whose calls have ended, also while a later call of it runs."""

import threading
from collections.abc import Iterable

from tailrace.jobs.engine import totals
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling.settle import settle


class EndedJobs:
    """What has ended in one claim and is not settled, or not reported yet.

    The thread that works on the claim adds to it and settles it in groups. While a call of it is
    slow, the thread that watches the claim settles what ended before.
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
        """Settle what has ended; return all that was settled since the last time, each with the
        state of its job. What another claim has taken over is left out."""
        with self._settling:
            self._settle()
        with self._lock:
            settled, self._settled = self._settled, []
            return settled

    def settle_behind_slow_call(self) -> None:
        """Settle what ended before the call that runs now: its effects are done, and without this a
        worker that is killed in the call would have them done again. Waits for no other thread;
        what cannot be settled now is left to the one that works on the claim."""
        if not self._settling.acquire(blocking=False):
            return
        try:
            self._settle(tries=1)
            totals.write_soon()  # what the drain has counted, too: it writes after the call
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
