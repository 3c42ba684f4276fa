"""The spans of a job's time as bars on one axis; for a live job, up to now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.explain.time_spent import Span
from tailrace.jobs.runtime.states import LIVE, State

QUARTERS = (0, 25, 50, 75, 100)
NARROWEST = 0.5
"""The minimum width of a bar, in per cent of the axis."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A span of time; `left` and `width` are per cent of the axis, as text for SVG."""

    span: Span
    left: str
    width: str


@dataclass(frozen=True, slots=True)
class Waterfall:
    """Bars on an axis from the first recorded time to the last."""

    bars: Sequence[Bar]
    begun: datetime
    ended: datetime

    @property
    def ticks(self) -> list[str]:
        """The time since the beginning at each quarter of the axis."""
        seconds = (self.ended - self.begun).total_seconds()
        return [_tick(seconds * part / 100) for part in QUARTERS]


TICKS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))


def _tick(seconds: float) -> str:
    """Return the label of a tick on the axis, in two units: `1 h 8 min`, `1.5 s`."""
    for size, unit, smaller, smaller_unit in TICKS:
        if seconds >= size:
            rest = int(seconds % size // smaller)
            return f"{seconds // size:.0f} {unit}" + (f" {rest} {smaller_unit}" if rest else "")
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{round(seconds, 1):g} s"


def waterfall(job: Job, spans: Sequence[Span], now: datetime) -> Waterfall | None:
    """Return the bars of these spans and of the current span; None if there are none."""
    spans = [*spans, *_open_span(job, spans, now)]
    if not spans:
        return None
    begun = min(span.begun for span in spans)
    ended = max(span.ended for span in spans)
    whole = max((ended - begun).total_seconds(), 0.000_001)
    return Waterfall([_bar(span, begun, whole) for span in spans], begun, ended)


def _bar(span: Span, begun: datetime, whole: float) -> Bar:
    width = max(100 * span.seconds / whole, NARROWEST)
    left = min(100 * (span.begun - begun).total_seconds() / whole, 100 - width)
    return Bar(span, f"{max(left, 0):.2f}", f"{min(width, 100):.2f}")


def _open_span(job: Job, spans: Sequence[Span], now: datetime) -> list[Span]:
    if job.state not in LIVE:
        return []
    if job.state == State.RUNNING:
        since, what = job.started_at or now, f"claim {job.claim_no}"
        if spans and spans[-1].kind == "claim":
            since, what = spans[-1].ended, "call"
        return [Span(f"{what} → now", since, max(now, since), "running", "run")]
    since = spans[-1].ended if spans else job.created_at
    if job.state == State.PENDING and since < job.due_at <= now:
        queued = Span("due → now", job.due_at, now, "queued", "queued")
        return [Span("wait → due", since, job.due_at, "", "wait"), queued]
    is_due = job.state == State.PENDING and job.due_at - now <= timedelta()
    why, kind = ("queued", "queued") if is_due else ("not due yet", "wait")
    return [Span("wait → now", since, max(now, since), why, kind)]
