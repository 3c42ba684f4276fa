"""The history of a queue in the last hour, day or week, from the sums that upkeep writes: a few
hundred rows at most."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tailrace.db.query import database_now
from tailrace.jobs.models import QueuePeriod
from tailrace.jobs.models.queue_period import HOUR, LAST_CLASS, MINUTE, RATIO, TEN_MINUTES


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

    def add(self, row: QueuePeriod) -> None:
        self.completed += row.completed
        self.retried += row.retried
        self.failed += row.failed
        self.busy_ms += row.busy_ms
        self.wait.update({int(number): jobs for number, jobs in row.wait.items()})
        self.run.update({int(number): jobs for number, jobs in row.run.items()})


@dataclass(frozen=True, slots=True)
class History:
    """The periods of a window, oldest first, including empty ones."""

    window: Window
    periods: Sequence[Period]
    total: Period

    @property
    def busy(self) -> float:
        """How many worker processes the queue kept busy on average."""
        return self.total.busy_ms / 1000 / self.window.seconds


def history(queue: str, window: Window) -> History:
    """Return the queue's history in the window, up to the last full minute."""
    now = database_now()
    last = _begin(now, window.period)
    times = [last - timedelta(seconds=window.period * back) for back in range(window.count)]
    periods = {at: Period(at) for at in reversed(times)}
    total = Period(times[-1])
    for row in _rows(queue, window, times[-1], now):
        if period := periods.get(_begin(row.at, window.period)):
            period.add(row)
            total.add(row)
    return History(window, list(periods.values()), total)


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
