"""Counters and histograms for /metrics.

Each process adds up its counts and writes them with the statistics of a drain, or from a thread
each second. The sums are in the database, so each process can be scraped for the counts of all. The
table is unlogged: it survives restarts, but a crash of PostgreSQL empties it. Prometheus expects
counters that may restart at zero.
"""

import math
import os
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tailrace.db import connections
from tailrace.db.query import execute
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.environment.conf import conf
from tailrace.events.publish import Recorded
from tailrace.jobs.engine.coalesce import Coalescer
from tailrace.jobs.engine.counters.totals_sql import ADD as ADD
from tailrace.jobs.engine.counters.totals_sql import RECORD
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.runtime.states import State

OUTCOMES = (
    "completed", "skipped", "cancelled", "failed", "retried", "snoozed", "interrupted",
    "handed_back", "lost",
)  # fmt: skip
"""The outcomes of a claim. `handed_back`: the call did not begin. Add new outcomes at the end."""
BUCKETS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0)
"""Upper bounds in seconds. If they change, the metrics below need new names."""
SETTLED, WAIT, RUN, WAKE_UPS, EVENTS = "settled", "wait", "run", "wake_ups", "events"
"""The metrics. EVENTS is counted by event type, the others by queue."""
PACE_SECONDS = 1.0
"""The minimum time between two writes by the thread, or by the drains of a process."""
LATE_SECONDS = 1.5
"""The thread writes the counts if no drain of the process has written them for this long."""

Key = tuple[str, str]
"""A metric, and the name of a queue or an event type."""


class Pending:
    """The unwritten counts of this process, and the number of its running drains, which write
    them."""

    def __init__(self) -> None:
        self._begin()
        # The parent writes its own counts.
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._numbers: dict[Key, list[float]] = {}
        self._taken_at = -math.inf
        self.drains = 0

    def add(self, counts: Mapping[Key, Sequence[float]]) -> None:
        with self._lock:
            for key, numbers in counts.items():
                before = self._numbers.get(key) or [0.0] * len(numbers)
                self._numbers[key] = [a + b for a, b in zip(before, numbers, strict=True)]

    def add_drains(self, count: int) -> None:
        with self._lock:
            self.drains += count

    def take(self) -> dict[Key, list[float]]:
        with self._lock:
            self._taken_at = time.monotonic()
            numbers, self._numbers = self._numbers, {}
            return numbers

    def any(self) -> bool:
        return bool(self._numbers)

    def age(self) -> float:
        return time.monotonic() - self._taken_at


_pending = Pending()


def settled(verdict: Verdict, state: str) -> None:
    """Count a settled claim. `state` is the state of the job after the settlement."""
    job, name = verdict.job, verdict.job.handler.name
    outcome = state
    if state == State.PENDING:
        outcome = verdict.attempt.value if verdict.attempt else "handed_back"
    counts: dict[Key, Sequence[float]] = {(SETTLED, name): _outcome(outcome)}
    if outcome != "handed_back":
        counts[WAIT, name] = observation(job.waited)
        if job.call_took is not None:
            counts[RUN, name] = observation(job.call_took)
    _pending.add(counts)


def lost(names: Counter[str]) -> None:
    """Count claims whose workers were lost. `names` has the number of claims by queue."""
    add({(SETTLED, name): _outcome("lost", count) for name, count in names.items()})


def sent(name: str) -> None:
    """Count a wake-up of the queue."""
    add({(WAKE_UPS, name): [1]})


def published_on_commit(events: Sequence[Recorded]) -> None:
    """Count these events by type, after the commit."""
    types = Counter(event.type for event in events)
    counts = {(EVENTS, name): [float(count)] for name, count in types.items()}
    connections.on_commit(add, counts)


def add(counts: Mapping[Key, Sequence[float]]) -> None:
    """Add these counts. They are written within seconds, or at the end of the running drain."""
    _pending.add(counts)
    if _pending.drains < 1:
        write_soon()


def write_soon() -> None:
    """Have the thread write the pending counts, if no drain writes them first."""
    if conf.JOBS_WAKE == "thread" and _pending.any():
        _writer.request([""])


@contextmanager
def written_by_drain() -> Iterator[None]:
    """Let the drain that runs in the block write the counts, with `ADD`, instead of the thread."""
    _pending.add_drains(1)
    try:
        yield
    finally:
        _pending.add_drains(-1)


def observation(seconds: float) -> list[float]:
    """Return a histogram of this one value: the count of each bucket, then the sum."""
    numbers = [0.0] * (len(BUCKETS) + 2)
    numbers[bisect_left(BUCKETS, seconds)] = 1.0
    numbers[-1] = max(seconds, 0.0)
    return numbers


def _outcome(outcome: str, count: float = 1) -> list[float]:
    return [count if outcome == each else 0.0 for each in OUTCOMES]


def _params(counts: Mapping[Key, Sequence[float]]) -> dict[str, Any]:
    keys = sorted(counts)
    return {
        "metrics": text_array(metric for metric, _name in keys),
        "names": text_array(name for _metric, name in keys),
        "numbers": text_array(number_array(counts[key]) for key in keys),
    }


@contextmanager
def params_to_write() -> Iterator[dict[str, Any]]:
    """Yield the parameters of ADD for all pending counts. They stay pending if the block raises."""
    counts = _pending.take()
    try:
        yield _params(counts)
    except BaseException:
        _pending.add(counts)
        raise


def record(queue: str, tally: Counter[str], seconds: float) -> None:
    """Add to the statistics of the queue and minute, for the overview: the number of jobs that one
    drain settled, by state, and its duration. A crash may lose them.

    It also writes the pending counts, unless the last write was less than PACE_SECONDS ago:
    frequent updates of a row leave many dead versions, which slow down reads.
    """
    statistics = {
        "queue": queue,
        "completed": tally["completed"] + tally["skipped"],
        "retried": tally["pending"],
        "failed": tally["failed"],
        "busy_ms": int(seconds * 1000),
    }
    if conf.JOBS_WAKE != "thread" or _pending.age() >= PACE_SECONDS:
        with params_to_write() as params:
            execute(RECORD, **statistics, **params)
    else:
        execute(RECORD, **statistics, **_params({}))
        _writer.request([""])  # in case there is no other drain


def write(_items: object = None) -> None:
    with params_to_write() as params:
        execute(ADD, **params)


def _write_late(_items: object) -> None:
    """Write the pending counts, unless a drain writes them within LATE_SECONDS."""
    while not _writer.is_flushing() and (early := LATE_SECONDS - _pending.age()) > 0:
        time.sleep(min(early, 0.05))
    if _pending.any():
        write()


_writer: Coalescer[str] = Coalescer("totals", _write_late, pace=PACE_SECONDS)
