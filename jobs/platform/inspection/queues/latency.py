"""How long the jobs of each queue waited and ran in the last hour or day, from the sums that upkeep
writes. PostgreSQL adds up the classes of durations, so that a page reads one row per queue and
class."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tailrace.db.query import database_now, query
from tailrace.jobs.models.queue_period import ALL_QUEUES, HOUR, MINUTE, TEN_MINUTES
from tailrace.jobs.platform.inspection.queues.queue_history import percentile

MAX_QUEUES = 200
"""The queues with the longest waits that are shown."""

# The whole periods of `length` in the window, then the shorter ones after them.
_CLASSES = f"""
WITH whole AS (
  SELECT coalesce(max(at) + make_interval(secs => %(length)s), %(since)s::timestamptz) AS until
  FROM tailrace_jobs_queueperiod
  WHERE seconds = %(length)s AND at >= %(since)s::timestamptz
), parts AS (
  SELECT queue, wait, run FROM tailrace_jobs_queueperiod
  WHERE seconds = %(length)s AND at >= %(since)s::timestamptz AND queue <> '{ALL_QUEUES}'
  UNION ALL
  SELECT queue, wait, run FROM tailrace_jobs_queueperiod
  WHERE seconds = {MINUTE} AND at >= (SELECT until FROM whole)
    AND at >= %(recent)s::timestamptz AND queue <> '{ALL_QUEUES}'
)
SELECT queue, 'wait', key::int, sum(value::bigint)::bigint
FROM parts, jsonb_each_text(wait) GROUP BY queue, key
UNION ALL
SELECT queue, 'run', key::int, sum(value::bigint)::bigint
FROM parts, jsonb_each_text(run) GROUP BY queue, key
"""
_KEPT_MINUTES = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class Span:
    """A time up to now, and the length of the periods that cover it, in seconds."""

    name: str
    title: str
    seconds: int
    length: int


SPANS = {
    span.name: span
    for span in (
        Span("1h", "last hour", HOUR, TEN_MINUTES),
        Span("24h", "last 24 hours", 24 * HOUR, HOUR),
    )
}


@dataclass(slots=True)
class Latency:
    """The times of the jobs of a queue, in seconds, by class."""

    queue: str
    waits: Counter[int] = field(default_factory=Counter)
    runs: Counter[int] = field(default_factory=Counter)

    @property
    def jobs(self) -> int:
        return sum(self.waits.values())

    @property
    def wait(self) -> tuple[float | None, ...]:
        """The 50th, the 95th and the 99th percentile of the time from due to claim."""
        return _percentiles(self.waits)

    @property
    def run(self) -> tuple[float | None, ...]:
        """The 50th, the 95th and the 99th percentile of the time from claim to settle."""
        return _percentiles(self.runs)


def _percentiles(classes: Counter[int]) -> tuple[float | None, ...]:
    return tuple(percentile(classes, share) for share in (0.5, 0.95, 0.99))


def latencies(span: Span) -> Sequence[Latency]:
    """Return the times of the queues with jobs that ended in this time, the longest wait first."""
    now = database_now()
    by_queue: dict[str, Latency] = {}
    since = _begin(now - timedelta(seconds=span.seconds), span.length)
    recent = now - _KEPT_MINUTES
    rows = query(_CLASSES, since=since, length=span.length, recent=recent)
    for queue, kind, number, jobs in rows:
        latency = by_queue.setdefault(queue, Latency(queue))
        classes = latency.waits if kind == "wait" else latency.runs
        classes[number] += jobs
    ordered = sorted(by_queue.values(), key=lambda each: (-(each.wait[1] or 0.0), each.queue))
    return ordered[:MAX_QUEUES]


def _begin(at: datetime, seconds: int) -> datetime:
    """Return the begin of the first whole period after this time."""
    return datetime.fromtimestamp(-(-at.timestamp() // seconds) * seconds, at.tzinfo)
