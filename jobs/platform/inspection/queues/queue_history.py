"""The history of a queue, or of all queues together, in the last hour, day or week, from the sums
that upkeep writes: a few hundred rows at most. The last minutes, which are not summed up yet, are
read from Throughput."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from django.db.models import Sum

from tailrace.db.query import database_now
from tailrace.jobs.models import QueuePeriod, Throughput
from tailrace.jobs.models.queue_period import (
    ALL_QUEUES,
    HOUR,
    LAST_CLASS,
    MINUTE,
    RATIO,
    TEN_MINUTES,
)


@dataclass(frozen=True, slots=True)
class Window:
    """A time up to now, and the length of its periods; both in seconds."""

    name: str
    title: str
    seconds: int
    period: int

    @property
    def count(self) -> int:
        return self.seconds // self.period


WINDOWS = {
    window.name: window
    for window in (
        Window("1h", "last hour", 3600, MINUTE),
        Window("24h", "last 24 hours", 86_400, TEN_MINUTES),
        Window("7d", "last 7 days", 7 * 86_400, HOUR),
    )
}
LENGTHS = (HOUR, TEN_MINUTES, MINUTE)
MAX_LAG = timedelta(minutes=10)
"""Minutes without sums are read from Throughput for this long."""


@dataclass(slots=True)
class Period:
    """The counts of a queue in a period that begins at `at`."""

    at: datetime
    completed: int = 0
    retried: int = 0
    failed: int = 0
    busy_ms: int = 0
    wait: Counter[int] = field(default_factory=Counter)
    run: Counter[int] = field(default_factory=Counter)
    """`wait` and `run`: number of jobs by class of duration."""
    events: int = 0
    due: int | None = None
    """Events that were recorded, and the most due jobs; only known of all queues together."""

    @property
    def settled(self) -> int:
        """How many calls of handlers ended: each completes, retries or fails a job."""
        return self.completed + self.retried + self.failed

    def add(self, row: QueuePeriod) -> None:
        self.completed += row.completed
        self.retried += row.retried
        self.failed += row.failed
        self.busy_ms += row.busy_ms
        self.wait.update({int(number): jobs for number, jobs in row.wait.items()})
        self.run.update({int(number): jobs for number, jobs in row.run.items()})
        self.events += row.events
        if row.due is not None:
            self.due = max(row.due, self.due or 0)


@dataclass(frozen=True, slots=True)
class History:
    """The periods of a window, oldest first, including empty ones."""

    window: Window
    periods: Sequence[Period]
    total: Period
    now: datetime
    summed_to: datetime | None
    """The end of the last minute whose times and events are known; None if there is none lately."""

    def before(self, end: datetime | None) -> list[Period]:
        """Return the periods that ended by this time; none for None."""
        length = timedelta(seconds=self.window.period)
        return [] if end is None else [each for each in self.periods if each.at + length <= end]

    @property
    def busy(self) -> float:
        """How many worker processes the queue kept busy on average."""
        return self.total.busy_ms / 1000 / self.window.seconds


def history(queue: str, window: Window) -> History:
    """Return the history of a queue in the window, or of ALL_QUEUES. The last period is the current
    one."""
    now = database_now()
    last = _begin(now, window.period)
    times = [last - timedelta(seconds=window.period * back) for back in range(window.count)]
    periods = {at: Period(at) for at in reversed(times)}
    total = Period(times[-1])
    summed_to = _summed_to(now)
    counted = _not_summed(queue, summed_to or now - MAX_LAG)
    for row in (*_rows(queue, window, times[-1], now), *counted):
        if period := periods.get(_begin(row.at, window.period)):
            period.add(row)
            total.add(row)
    return History(window, list(periods.values()), total, now, summed_to)


def _summed_to(now: datetime) -> datetime | None:
    """Return the end of the last minute that upkeep has summed up; None if that is long ago."""
    rows = QueuePeriod.objects.filter(seconds=MINUTE, at__gte=now - MAX_LAG).order_by("-at")
    last = rows.values_list("at", flat=True).first()
    return None if last is None else last + timedelta(seconds=MINUTE)


def _not_summed(queue: str, since: datetime) -> list[QueuePeriod]:
    """Return the counts of the minutes since then, without times."""
    rows = Throughput.objects.filter(minute__gte=since)
    if queue != ALL_QUEUES:
        rows = rows.filter(queue=queue)
    names = ("completed", "retried", "failed", "busy_ms")
    sums = rows.values("minute").annotate(*(Sum(name) for name in names)).order_by("minute")
    columns = sums.values_list("minute", *(f"{name}__sum" for name in names))
    return [
        QueuePeriod(at=minute, **dict(zip(names, numbers, strict=True)))
        for minute, *numbers in columns
    ]


def _begin(at: datetime, seconds: int) -> datetime:
    return datetime.fromtimestamp(at.timestamp() // seconds * seconds, UTC)


def _rows(queue: str, window: Window, start: datetime, now: datetime) -> list[QueuePeriod]:
    """Return the rows of the window: the longest periods that upkeep has written, then shorter
    ones for the time that these do not cover yet."""
    rows: list[QueuePeriod] = []
    covered: set[tuple[int, datetime]] = set()
    lengths = [length for length in LENGTHS if length <= window.period]
    since = start
    for number, length in enumerate(lengths):
        periods = QueuePeriod.objects.filter(queue=queue, seconds=length, at__gte=since)
        for row in periods.order_by("at")[: 2 * window.count]:
            longer = {(other, _begin(row.at, other)) for other in lengths[:number]}
            if not longer & covered:
                rows.append(row)
                covered.add((length, row.at))
        since = _begin(now, length) - timedelta(seconds=length)
    return rows


def percentile(classes: Counter[int], share: float) -> float | None:
    """Return the percentile for this share of the jobs, in seconds; None without jobs."""
    jobs = sum(classes.values())
    if not jobs:
        return None
    rank = share * jobs
    for number in sorted(classes):
        if rank <= classes[number]:
            low, high = (RATIO ** (number - 1) if number else 0.0), RATIO**number
            part = 0.0 if number == LAST_CLASS else rank / classes[number]
            return (low + (high - low) * part) / 1000
        rank -= classes[number]
    raise AssertionError("unreachable")
