"""Charts as plain SVG: bars with axes, each also with a table of its figures, and sparklines."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from tailrace.jobs.platform.inspection.display.formatting import count, duration, timestamp
from tailrace.jobs.platform.inspection.queues.marks import Mark
from tailrace.jobs.platform.inspection.queues.queue_history import History, Period, percentile

WIDTH, HEIGHT = 600.0, 100.0
"""Size of the drawing in SVG units; the page scales it."""
SMALLEST = 1.5
"""The height of the smallest bar."""
X_TICKS = 4
SHARES = (("p50", 0.5), ("p95", 0.95))
Values = Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity over time; `path` is an SVG path, `style` the name of its colour."""

    name: str
    style: str
    path: str


@dataclass(frozen=True, slots=True)
class Line:
    """A vertical line at `x`, for a change at the time `at`."""

    x: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its labels; `rows` are its figures: a time, and one value per series."""

    id: str
    title: str
    summary: str
    series: Sequence[Series]
    y_labels: Sequence[str]
    """From the top to zero."""
    x_labels: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    lines: Sequence[Line] = ()


def charts(history: History) -> list[Chart]:
    """Return the charts of a queue: finished jobs per minute, wait times and run times."""
    return [
        counts_chart(history),
        _times(history, "wait", "Wait: from due to claim", lambda period: period.wait),
        _times(history, "run", "Run: from claim to settle", lambda period: period.run),
    ]


def due_chart(history: History) -> Chart:
    """Return the chart of the jobs that waited although they were due, of all queues."""
    values = [float(period.due or 0) for period in history.periods]
    top = _round_up(max(values, default=0))
    most = history.total.due
    return Chart(
        id="due",
        title="Waiting",
        summary="not counted yet" if most is None else f"at most {count(most, 'due job')}",
        series=[Series("due jobs", "warn", _bars(values, [0.0] * len(values), top))],
        y_labels=[_number(top), _number(top / 2), "0"],
        x_labels=_x_labels(history),
        rows=[
            (timestamp(period.at), [f"{period.due:,}"])
            for period in reversed(history.periods)
            if period.due
        ],
    )


def sparkline(values: Values) -> str:
    """Return the points of an SVG polyline of 120 by 24 for these values; empty if all of them are
    0. None counts as 0."""
    numbers = [value or 0 for value in values]
    peak = max(numbers, default=0)
    if not peak:
        return ""
    step = 120 / max(len(numbers) - 1, 1)
    points = ((round(i * step, 1), round(23 - 22 * v / peak, 1)) for i, v in enumerate(numbers))
    return " ".join(f"{x:g},{y:g}" for x, y in points)


def counts_chart(history: History, marks: Sequence[Mark] = ()) -> Chart:
    """Return the chart of the jobs that completed, were retried and failed, per minute, with a line
    for each mark."""
    minutes = history.window.period / 60
    total = history.total
    columns = [
        ("completed", "good", [period.completed / minutes for period in history.periods]),
        ("retried", "warn", [period.retried / minutes for period in history.periods]),
        ("failed", "bad", [period.failed / minutes for period in history.periods]),
    ]
    heights = map(sum, zip(*(values for _name, _style, values in columns), strict=True))
    top = _round_up(max(heights, default=0))
    base = [0.0] * len(history.periods)
    series = []
    for name, style, values in columns:
        series.append(Series(name, style, _bars(values, base, top)))
        base = [low + value for low, value in zip(base, values, strict=True)]
    summary = f"{total.completed:,} completed, {total.retried:,} retried, {total.failed:,} failed"
    return Chart(
        id="counts",
        title="Per minute",
        summary=summary,
        series=series,
        y_labels=[_number(top), _number(top / 2), "0"],
        x_labels=_x_labels(history),
        rows=_rows(history, [[_number(v) for v in values] for _n, _s, values in columns]),
        lines=[_vertical(history, mark) for mark in marks],
    )


def _vertical(history: History, mark: Mark) -> Line:
    length = history.window.period
    part = (mark.at - history.periods[0].at).total_seconds() / (length * len(history.periods))
    return Line(f"{WIDTH * min(max(part, 0.0), 1.0):.1f}", mark.at, mark.text)


def _times(
    history: History, id: str, title: str, classes: Callable[[Period], Counter[int]]
) -> Chart:
    columns: list[tuple[str, Values]] = [
        (name, [percentile(classes(period), share) for period in history.periods])
        for name, share in SHARES
    ]
    top = round_up_time(max(value or 0.0 for _name, values in columns for value in values))
    totals = [percentile(classes(history.total), share) for _name, share in SHARES]
    parts = (f"{name} {duration(v)}" for (name, _share), v in zip(SHARES, totals, strict=True))
    return Chart(
        id=id,
        title=title,
        summary=", ".join(parts) if totals[0] is not None else "no jobs",
        # The longer bars are behind the shorter ones.
        series=[
            Series(name, name, _bars([v or 0.0 for v in values], [0.0] * len(values), top))
            for name, values in reversed(columns)
        ],
        y_labels=[duration(top), duration(top / 2), "0"] if top else ["", "", "0"],
        x_labels=_x_labels(history),
        rows=_rows(history, [[duration(v) for v in values] for _name, values in reversed(columns)]),
    )


def _bars(values: Sequence[float], base: Sequence[float], top: float) -> str:
    """Return an SVG path with a bar for each value that is not zero, stacked on `base`. None is
    smaller than SMALLEST."""
    step = WIDTH / max(len(values), 1)
    scale = HEIGHT / top if top else 0.0
    return "".join(
        f"M{number * step:.1f} {HEIGHT - low * scale:.1f}h{step * 0.85:.1f}"
        f"v{-max(value * scale, SMALLEST):.1f}h{-step * 0.85:.1f}z"
        for number, (value, low) in enumerate(zip(values, base, strict=True))
        if value
    )


def _x_labels(history: History) -> list[str]:
    format = "%d %b" if history.window.seconds > 86_400 else "%H:%M"
    step = len(history.periods) / X_TICKS
    shown = [history.periods[int(step * tick)] for tick in range(X_TICKS)]
    return [f"{period.at:{format}}" for period in shown] + ["now"]


def _rows(history: History, columns: Sequence[Sequence[str]]) -> list[tuple[str, Sequence[str]]]:
    rows: list[tuple[str, Sequence[str]]] = [
        (timestamp(period.at), [column[number] for column in columns])
        for number, period in enumerate(history.periods)
        if period.completed or period.retried or period.failed or period.run
    ]
    return rows[::-1]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


_EVEN = (1, 2, 4, 6, 8)
TIMES = (
    *(step * 10.0**power for power in (-2, -1, 0) for step in _EVEN),
    *(unit * step for unit in (1.0, 60.0) for step in (10, 20, 30, 40, 60, 120, 240, 360, 480)),
    *(3600.0 * hours for hours in (10, 12, 18, 24, 48)),
    *(86_400.0 * days for days in (4, 6, 8, 10, 20, 30, 40)),
)
"""Possible ends of a time axis in seconds: the middle of the axis is a round number, too."""


def round_up_time(seconds: float) -> float:
    """Return the smallest of TIMES that is at least `seconds`; 0 for 0."""
    return next((time for time in TIMES if time >= seconds), seconds) if seconds else 0.0


def _round_up(value: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, 50 … that is at least `value`; 1 for 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value)
