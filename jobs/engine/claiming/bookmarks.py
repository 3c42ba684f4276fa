"""Bookmarks: let claims skip the dead index entries of claimed jobs.

A claim scans the index of due jobs from its beginning. While another session holds a snapshot (a
dump, a long report), the entries of all jobs claimed since then stay in the index, and each scan
passes over them. So each process remembers, for each queue and priority, up to which due time it
has claimed all jobs, and most of its scans begin there. From time to time a *full* scan from the
beginning finds jobs with an earlier due time: jobs that were committed late, given back or rescued.

While full scans take no longer than others, all scans are full: without a held snapshot nothing is
skipped. Slower full scans take at most a fifteenth of the time, or happen each LONGEST_PAUSE.
Bookmarks affect only the scan, not which jobs may be claimed.
"""

import time
from collections import defaultdict

from tailrace.db import clock
from tailrace.jobs.handler import LOWEST_PRIORITY

MARGIN_SECONDS = 1.0
"""A scan begins this long before its bookmark, to find jobs that were committed late."""
CHEAP_SECONDS = 0.001
"""All scans are full while a full scan takes at most this much longer than others."""
PAUSE = 15
"""After a slower full scan, the pause until the next one is its extra time multiplied by this."""
LONGEST_PAUSE = 5.0
"""The maximum pause until the next full scan. Together with the tick, which wakes queues with due
jobs, it limits how long a due job may be overlooked."""
WEIGHT = 0.3
"""The weight of the newest scan in the moving average of scans that begin at a bookmark."""
BEGINNING = 1e10
"""An age in seconds that is greater than the age of any job."""


class Bookmark:
    """Up to which due times a process has claimed the jobs of one queue, by its monotonic clock."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._seen = [-BEGINNING] * (LOWEST_PRIORITY + 1)
        self._full_again_at = 0.0
        self._last_full = 0.0
        self._usual: float | None = None
        self._offset = clock.offset

    def ages(self) -> list[float] | None:
        """Return where the next scan begins: a due time per priority, in seconds before now. None:
        the next scan is full."""
        if self._offset != clock.offset:  # a test has moved the clock
            self._forget()
        now = time.monotonic()
        if now >= self._full_again_at:
            return None
        return [now - seen + MARGIN_SECONDS for seen in self._seen]

    def scanned(self, seconds: float, *, full: bool) -> None:
        """Record the duration of a scan that ended now. After two slow full scans, the next full
        scan is postponed."""
        if not full:
            usual = seconds if self._usual is None else self._usual
            self._usual = usual + (seconds - usual) * WEIGHT
            return
        more = min(seconds, self._last_full) - (self._usual or 0.0)
        self._last_full = seconds
        pause = min(PAUSE * more, LONGEST_PAUSE) if more > CHEAP_SECONDS else 0.0
        self._full_again_at = time.monotonic() + pause

    def claimed(self, began: float, last: tuple[int, float] | None = None) -> None:
        """Move the bookmark after a claim that began at this time (monotonic). `last`: the priority
        of the last job, and the seconds since its due time (negative). None: the claim has taken
        all due jobs."""
        if last is None:
            self._seen = [began] * len(self._seen)
        else:  # all due jobs of more urgent priorities were claimed
            priority, overdue = last
            self._seen[:priority] = [began] * priority
            self._seen[priority] = began + overdue

    def age(self) -> float:
        """Return where the next scan begins, in seconds before now, for scans without priorities.
        BEGINNING: the next scan is full."""
        ages = self.ages()
        return BEGINNING if ages is None else ages[0]


of_queue: defaultdict[str, Bookmark] = defaultdict(Bookmark)
"""The bookmarks of this process, by queue."""
