"""What the engine's thread knows of one async handler's queue in this process."""

import time
from collections import Counter

from tailrace.jobs.engine.claiming.claim import Limits
from tailrace.jobs.engine.in_flight.call import Call
from tailrace.jobs.engine.in_flight.places import PostponedJobs
from tailrace.jobs.engine.throughput import record
from tailrace.jobs.handler import Handler

SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two messages for other processes, while this one has no free places."""
RECORD_SECONDS = 1.0
RATE_SECONDS = 0.2
AHEAD_SECONDS = 0.03
"""Jobs are claimed ahead of the calls that end within this time, so that each place is taken again
at once: it is about as long as it takes to settle and to claim."""
LOOK_SECONDS = 0.1
"""When to look again for a queue with work and free places that may claim nothing now."""


class EndRate:
    """How many calls ended lately."""

    def __init__(self) -> None:
        self._count, self._since = 0, 0.0
        self.per_second = 0.0
        """Of the last RATE_SECONDS that are over."""

    def add(self, count: int) -> None:
        self._count += count

    def look(self, now: float) -> None:
        """Renew the rate, from time to time. Between two looks it stays the same."""
        if now - self._since >= RATE_SECONDS:
            self.per_second = self._count / (now - self._since)
            self._count, self._since = 0, now


class GrowingPause:
    """Lets something happen at once, then after a while, twice as long each time."""

    def __init__(self) -> None:
        self.ends_at, self._seconds = 0.0, 0.0

    def is_over(self, now: float) -> bool:
        """Whether it may happen now, after which the next pause begins."""
        if now < self.ends_at:
            return False
        self._seconds = min(max(2 * self._seconds, SHORTEST_PAUSE), LONGEST_PAUSE)
        self.ends_at = now + self._seconds
        return True

    def reset(self) -> None:
        self.ends_at = self._seconds = 0.0


class QueueState:
    """The calls of one queue, and what is to be done next for it. Of the engine's thread alone."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.calls: set[Call] = set()
        self.may_have_work = False
        """A claim may find jobs."""
        self.must_begin = True
        """The flag `awake` is to be cleared before the next claim."""
        self.limits: Limits | None = None
        self.began_at = 0.0
        """When the limits were read."""
        self.retry_at = 0.0
        """After an error of the database, no claim before this."""
        self.ends = EndRate()
        self.postponed = PostponedJobs()
        self.message_pending = False
        """A message came while there was no free place: it is for other processes."""
        self.messages = GrowingPause()
        """Between the messages that this process sends, while it has no free places."""
        self.passes = GrowingPause()
        """Between the messages that its Celery task passes on at once."""
        self._tally: Counter[str] = Counter()
        self._recorded_at = self._busy_since = time.monotonic()

    def free(self) -> int:
        """Return how many jobs may be claimed now, those ahead of their places included."""
        return self.handler.concurrency + self.ahead() - len(self.calls)

    def ahead(self) -> int:
        """Return how many jobs may be claimed that wait for a place: as many as get one soon. None
        where a place is not all that a job needs."""
        limits = self.limits
        if limits is None or limits.max_running is not None or limits.rate_limit is not None:
            return 0
        if self.handler.in_lanes() or self.handler.per_destination is not None:
            return 0
        if self.handler.max_attempts == 1:  # of a lost worker's job it must be known if it began
            return 0
        return int(self.ends.per_second * AHEAD_SECONDS)

    def is_limited(self) -> bool:
        """Whether the end of a call may allow a claim that was not allowed before."""
        limited = self.limits is not None and self.limits.max_running is not None
        return limited or self.handler.ordered or self.handler.per_destination is not None

    def lanes_in_use(self) -> Counter[str] | None:
        """Return the places that are taken by lane, where lanes are destinations."""
        if not self.handler.lanes_are_destinations():
            return None
        return Counter(call.job.lane for call in self.calls)

    # --- messages for other processes ---

    def message_at(self) -> float | None:
        """Return when the message that is pending goes to another process."""
        return self.messages.ends_at if self.message_pending else None

    def message_came(self, now: float) -> None:
        """Keep a message that came while there was no free place for another process."""
        if not self.message_pending:
            self.message_pending = True
            self.messages.ends_at = max(self.messages.ends_at, now + SHORTEST_PAUSE)

    def has_slack(self) -> None:
        """The queue's work fits into this process: the next message need not wait."""
        self.message_pending = False
        self.messages.reset()
        self.passes.reset()

    def next_times(self) -> tuple[float | None, ...]:
        """Return when something is to be done for this queue."""
        wants = self.may_have_work and self.free() > 0
        look_at = max(self.retry_at, time.monotonic() + LOOK_SECONDS) if wants else None
        return self.message_at(), self.record_at(), look_at

    # --- statistics ---

    def add(self, calls: list[Call], now: float) -> None:
        if not self.calls:
            self._busy_since = now
        self.calls.update(calls)

    def count(self, state: str, jobs: int) -> None:
        self._tally[state] += jobs

    def record_at(self) -> float | None:
        return self._recorded_at + RECORD_SECONDS if self._tally else None

    def record(self, now: float) -> None:
        """Write what was settled since the last time to the statistics."""
        tally, self._tally = self._tally, Counter()
        if not tally:
            return
        now = min(now, time.monotonic())
        seconds = now - max(self._busy_since, self._recorded_at)
        self._recorded_at = now
        record(self.handler.name, tally, max(seconds, 0.0))
