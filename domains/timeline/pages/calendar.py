"""The days of a month as the weeks of a calendar, each shaded by its number of points."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from tailrace.domains.timeline.points.days import Day

LEVELS = 4
"""The shades of days with points; level 0 is a day without points."""


@dataclass(frozen=True, slots=True)
class CalendarDay:
    day: date
    points: int
    level: int


def weeks_of(first: date, last: date, days: Sequence[Day]) -> list[list[CalendarDay | None]]:
    """Return the weeks from Monday to Sunday with the days from `first` to `last`; None stands for
    a day of another month."""
    points = {each.day: each.points for each in days}
    most = max(points.values(), default=0)
    cells: list[CalendarDay | None] = [None] * first.weekday()
    for number in range((last - first).days + 1):
        day = first + timedelta(days=number)
        count = points.get(day, 0)
        cells.append(CalendarDay(day, count, _level(count, most)))
    cells += [None] * (-len(cells) % 7)
    return [cells[start : start + 7] for start in range(0, len(cells), 7)]


def _level(points: int, most: int) -> int:
    return -(-LEVELS * points // most) if points else 0
