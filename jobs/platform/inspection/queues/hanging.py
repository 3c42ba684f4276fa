"""Find calls of async handlers that hang: they run far longer than usual, and other jobs wait."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from tailrace.db import clock
from tailrace.db.query import query
from tailrace.db.sql.arrays import text_array
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.counters.totals import BUCKETS, RUN
from tailrace.jobs.engine.in_flight.places import PUT_OFF
from tailrace.jobs.handler import NO_LANE
from tailrace.jobs.platform.inspection.display.formatting import count, duration

SHORTEST_SECONDS = 10
"""A call that has run for less does not hang."""
TIMES_AS_LONG = 20
"""How many times as long as usual a call has to run."""
UNKNOWN_SECONDS = 30
"""How long a call has to run if no call of the handler has ended yet."""
MAX_COUNTED = 1000
"""Waiting jobs of a queue that are counted, and running jobs that are read."""

# The destination of a job is mostly its lane or its routing key (`Handler.destination`). If it has
# neither, all waiting jobs of the queue are counted. A job that is put off is claimed again and
# again: then it is running, and its call has not begun.
_LONG_CALLS = f"""
WITH running AS MATERIALIZED (
  SELECT id, handler, coalesce(nullif(nullif(lane, '{NO_LANE}'), ''), routing_key) AS destination,
    started_at
  FROM tailrace_jobs_live WHERE state = 'running' AND handler = ANY(%(handlers)s) AND begun
    AND started_at < {clock.NOW} - make_interval(secs => {SHORTEST_SECONDS})
  LIMIT {MAX_COUNTED}
),
long AS (
  SELECT handler, destination, count(*) AS calls, min(started_at) AS since,
    (array_agg(id ORDER BY started_at))[1:3] AS jobs
  FROM running GROUP BY handler, destination
)
SELECT long.handler, destination, calls, since,
  extract(epoch FROM {clock.NOW} - since)::float8, long.jobs, waiting.jobs, usual.numbers
FROM long
LEFT JOIN tailrace_jobs_total usual ON usual.metric = '{RUN}' AND usual.name = long.handler,
LATERAL (
  SELECT count(*) AS jobs FROM (
    (SELECT lane, routing_key, due_at <= {clock.NOW} OR starts_with(error, '{PUT_OFF}') AS waits
     FROM tailrace_jobs_live WHERE handler = long.handler AND state = 'pending'
     ORDER BY priority, due_at LIMIT {MAX_COUNTED})
    UNION ALL
    (SELECT lane, routing_key, NOT begun FROM tailrace_jobs_live
     WHERE handler = long.handler AND state = 'running' LIMIT {MAX_COUNTED})
  ) job
  WHERE waits AND (long.destination = '' OR long.destination IN (lane, routing_key))
) waiting
WHERE waiting.jobs > 0 ORDER BY since
"""


@dataclass(frozen=True, slots=True)
class HangingCalls:
    """The calls of one handler to one destination."""

    handler: str
    destination: str
    """Empty if the lane and the routing key of its jobs do not show it."""
    calls: int
    since: datetime
    seconds: float
    """How long the first of them has run."""
    jobs: Sequence[int]
    """The first of them."""
    waiting: int
    usual: float | None
    """Half of the calls took at most this many seconds; None if none has ended yet."""

    @property
    def words(self) -> str:
        """How long they have run, how long calls usually take, and what waits for them."""
        calls = "1 call has" if self.calls == 1 else f"{self.calls:,} calls have"
        usual = "no call has ended yet"
        if self.usual is not None:
            usual = f"usually calls take up to {duration(self.usual)}"
        wait = "waits" if self.waiting == 1 else "wait"
        return (
            f"{calls} run for {duration(self.seconds)} ({usual}), and"
            f" {count(self.waiting, 'job', MAX_COUNTED)} {wait} for them"
        )


def hanging_calls(handlers: Sequence[str]) -> list[HangingCalls]:
    """Return the hanging calls of these handlers, if they are async; the longest first."""
    known = ((name, registry.find(name)) for name in handlers)
    names = [name for name, handler in known if handler is not None and handler.is_async()]
    if not names:
        return []
    hanging = []
    for *columns, numbers in query(_LONG_CALLS, handlers=text_array(names)):
        values = [*columns, _median(numbers)]
        calls = HangingCalls(*values)
        if calls.seconds >= _patience(calls.usual):
            hanging.append(calls)
    return hanging


def _patience(usual: float | None) -> float:
    return UNKNOWN_SECONDS if usual is None else max(SHORTEST_SECONDS, TIMES_AS_LONG * usual)


def _median(numbers: Sequence[float] | None) -> float | None:
    """Return the upper bound of the bucket with the median. `numbers` has the number of calls in
    each bucket, and the sum of their seconds."""
    counts = (numbers or [0.0])[:-1]
    half, seen = sum(counts) / 2, 0.0
    for bound, number in zip((*BUCKETS, float("inf")), counts, strict=False):
        seen += number
        if seen and seen >= half:
            return bound
    return None
