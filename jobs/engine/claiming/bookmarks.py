"""Where a process begins to look for due jobs, while what was claimed cannot be removed.

A claim walks the index of due jobs from its beginning. While another session holds a snapshot (a
dump, a long report), the entries of all that was claimed since stay there, and each walk passes
over them. So each process remembers, per queue and priority, up to when it has seen what is due,
and most of its claims begin there. From time to time one looks from the very beginning, and finds
what became due before: a late commit, a job that was given back or rescued.

Looks from the beginning that take no longer than others are made each time: without a held
snapshot nothing is skipped. Slower ones take a fifteenth of the time at most, or happen each
LONGEST_PAUSE. This is a matter of searching alone; which jobs may be claimed does not depend on it.
"""

import time
from collections import defaultdict

from tailrace.db import clock
from tailrace.jobs.handler import LOWEST_PRIORITY

MARGIN_SECONDS = 1.0
"""A look begins this much before what was seen, for commits that come late."""
CHEAP_SECONDS = 0.001
"""What a look from the beginning may take longer than others and still be made each time."""
PAUSE = 15
"""After a slower one, so many times as long as it took more than others, none is made."""
LONGEST_PAUSE = 5.0
"""Seconds after which a look from the beginning is made at the latest: with the tick, which wakes
queues with due jobs, the bound on how long a due job may be overlooked."""
WEIGHT = 0.3
"""Of the newest look in the moving average of those that begin at a bookmark."""
BEGINNING = 1e10
"""Seconds ago: before all jobs."""


class Bookmark:
    """How far a process has seen what is due in one queue, by its own monotonic clock."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._seen = [-BEGINNING] * (LOWEST_PRIORITY + 1)
        self._full_again_at = 0.0
        self._last_full = 0.0
        self._usual: float | None = None
        self._offset = clock.offset

    def ages(self) -> list[float] | None:
        """Return for each priority how many seconds ago what the next look finds became due at the
        earliest; None if it is from the beginning."""
        if self._offset != clock.offset:  # a test has moved the clock
            self._forget()
        now = time.monotonic()
        if now >= self._full_again_at:
            return None
        return [now - seen + MARGIN_SECONDS for seen in self._seen]

    def looked(self, seconds: float, *, full: bool) -> None:
        """Note how long a look has taken that ended now. `full`: it was from the beginning. The
        next of these is put off if the last two took long."""
        if not full:
            usual = seconds if self._usual is None else self._usual
            self._usual = usual + (seconds - usual) * WEIGHT
            return
        more = min(seconds, self._last_full) - (self._usual or 0.0)
        self._last_full = seconds
        pause = min(PAUSE * more, LONGEST_PAUSE) if more > CHEAP_SECONDS else 0.0
        self._full_again_at = time.monotonic() + pause

    def took(self, began: float, last: tuple[int, float] | None = None) -> None:
        """Note what a look that began at this time (monotonic) has left. `last`: the priority of
        the last job that it took, and the seconds since that was due (negative); None if nothing
        that is due was left."""
        if last is None:
            self._seen = [began] * len(self._seen)
        else:  # nothing of the priorities before it was left
            priority, overdue = last
            self._seen[:priority] = [began] * priority
            self._seen[priority] = began + overdue

    def age(self) -> float:
        """Return how many seconds ago what the next look finds came about at the earliest, where
        looks are of no priority."""
        ages = self.ages()
        return BEGINNING if ages is None else ages[0]


of_queue: defaultdict[str, Bookmark] = defaultdict(Bookmark)
"""The bookmarks of this process, by queue."""
