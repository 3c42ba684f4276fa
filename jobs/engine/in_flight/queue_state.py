"""The state of one async handler's queue in this process."""

import time
from collections import Counter

from tailrace.jobs.engine.claiming.claim import Limits
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.in_flight.call import Call
from tailrace.jobs.engine.in_flight.places import PostponedJobs
from tailrace.jobs.handler import Handler

SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two messages to other processes, while this one cannot take more jobs."""
RECORD_SECONDS = 1.0
RATE_SECONDS = 0.2
AHEAD_SECONDS = 0.03
"""Jobs are claimed in advance for the calls that will end within this time, so that a next call can
begin at once. It is about the time of a settlement and a claim."""
LOOK_SECONDS = 0.1
"""Time until the next claim for a queue with work that can take jobs but may not claim now."""


class EndRate:
    """The rate at which calls end."""

    def __init__(self) -> None:
        self._count, self._since = 0, 0.0
        self.per_second = 0.0
        """Ended calls per second, in the last complete interval of about RATE_SECONDS."""

    def add(self, count: int) -> None:
        self._count += count

    def look(self, now: float) -> None:
        """Compute the rate anew if RATE_SECONDS have passed."""
        if now - self._since >= RATE_SECONDS:
            self.per_second = self._count / (now - self._since)
            self._count, self._since = 0, now


class GrowingPause:
    """A pause between repeated actions: twice as long each time, up to LONGEST_PAUSE."""

    def __init__(self) -> None:
        self.ends_at, self._seconds = 0.0, 0.0

    def is_over(self, now: float) -> bool:
        """Return whether the action may happen now; if so, begin the next pause."""
        if now < self.ends_at:
            return False
        self._seconds = min(max(2 * self._seconds, SHORTEST_PAUSE), LONGEST_PAUSE)
        self.ends_at = now + self._seconds
        return True

    def reset(self) -> None:
        self.ends_at = self._seconds = 0.0


class QueueState:
    """The calls of one queue, and the times of its next work. Used by the engine thread."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.calls: set[Call] = set()
        self.may_have_work = False
        """Whether a claim may find jobs."""
        self.must_begin = True
        """Whether to clear the flag `awake` before the next claim."""
        self.limits: Limits | None = None
        self.began_at = 0.0
        """When the limits were read."""
        self.retry_at = 0.0
        """The earliest time of the next claim, after a database error."""
        self.ends = EndRate()
        self.postponed = PostponedJobs()
        self.message_pending = False
        """Whether a message is kept to be sent to other processes."""
        self.messages = GrowingPause()
        """The pause between messages that the engine thread sends to other processes."""
        self.passes = GrowingPause()
        """The pause between messages that the Celery task passes on at once."""
        self._tally: Counter[str] = Counter()
        self._recorded_at = self._busy_since = time.monotonic()

    def free(self) -> int:
        """Return how many jobs may be claimed now, including jobs claimed in advance (`ahead`)."""
        return self.handler.concurrency + self.ahead() - len(self.calls)

    def ahead(self) -> int:
        """Return how many jobs may be claimed in advance, because they can begin within
        AHEAD_SECONDS; 0 if their begin also depends on other limits."""
        limits = self.limits
        if limits is None or limits.max_running is not None or limits.rate_limit is not None:
            return 0
        if self.handler.in_lanes() or self.handler.per_destination is not None:
            return 0
        if self.handler.max_attempts == 1:  # after a loss it must be clear which jobs had begun
            return 0
        return int(self.ends.per_second * AHEAD_SECONDS)

    def is_limited(self) -> bool:
        """Whether the end of a call may allow a claim, by other limits than `concurrency`."""
        limited = self.limits is not None and self.limits.max_running is not None
        return limited or self.handler.ordered or self.handler.per_destination is not None

    def lanes_in_use(self) -> Counter[str] | None:
        """Return the number of calls by lane if lanes are destinations, else None."""
        if not self.handler.lanes_are_destinations():
            return None
        return Counter(call.job.lane for call in self.calls)

    # --- messages for other processes ---

    def message_at(self) -> float | None:
        """Return when to send the kept message to another process; None if there is none."""
        return self.messages.ends_at if self.message_pending else None

    def keep_message(self, now: float) -> None:
        if not self.message_pending:
            self.message_pending = True
            self.messages.ends_at = max(self.messages.ends_at, now + SHORTEST_PAUSE)

    def reset_messages(self) -> None:
        """Drop the kept message and reset the pauses: this process can take all due jobs."""
        self.message_pending = False
        self.messages.reset()
        self.passes.reset()

    def next_times(self) -> tuple[float | None, ...]:
        """Return the times of the next message, statistics and claim; None if there is none."""
        can_claim = self.may_have_work and self.free() > 0
        claim_at = max(self.retry_at, time.monotonic() + LOOK_SECONDS) if can_claim else None
        return self.message_at(), self.record_at(), claim_at

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
        tally, self._tally = self._tally, Counter()
        if not tally:
            return
        now = min(now, time.monotonic())
        seconds = now - max(self._busy_since, self._recorded_at)
        self._recorded_at = now
        totals.record(self.handler.name, tally, max(seconds, 0.0))
