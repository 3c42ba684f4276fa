"""The sections of a report: numbers, a table, and a chart."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar

from django.db.models import Count, QuerySet
from django.db.models.functions import TruncDate

from tailrace.domains.protection.services.reports.period import Period
from tailrace.environment.discovery import Described

MOST_LINES = 300
"""Maximum number of lines of a table. The other lines are only counted, and the report says so."""
MOST_TEXT = 200
"""Maximum number of characters of a cell."""
DayCounts = Mapping[tuple[Any, date], int]
"""Numbers of rows by their values of the column `group` and by day."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a section. All of it but the chart is text, which the template escapes."""

    section: "Section"
    totals: Mapping[str, int]
    """Numbers by label. The first label is the section's name, with the number of all lines."""
    lines: Sequence[Sequence[str]]
    """The lines of the table, newest first."""
    chart: str
    """SVG, or an empty string."""

    @property
    def count(self) -> int:
        return self.totals[self.section.name]

    @property
    def is_cut(self) -> bool:
        return len(self.lines) < self.count


class Section(Described):
    """A section of a report. The docstring of a subclass describes it for the reader."""

    name: ClassVar[str]
    title: ClassVar[str]
    order: ClassVar[int]
    empty: ClassVar[str]
    """The text of a section without lines."""
    time: ClassVar[str]
    """The column of the rows that has to be in the period."""
    time_format: ClassVar[str] = "%Y-%m-%d"
    group: ClassVar[str]
    """The column by whose values, `choices`, the rows are counted."""
    choices: ClassVar[Sequence[Any]]
    columns: ClassVar[Sequence[str]]
    """The titles of the columns of the table: the time, and the cells of `cells`."""

    def rows(self, user_id: int) -> QuerySet[Any]:
        """Return the rows of the user, of all times."""
        raise NotImplementedError

    def cells(self, row: Any) -> Sequence[object]:
        raise NotImplementedError

    def chart(self, counts: DayCounts, period: Period) -> str:
        """Return the chart as SVG, or an empty string."""
        return ""

    def collect(self, user_id: int, period: Period) -> Content:
        within = {f"{self.time}__gte": period.start, f"{self.time}__lt": period.end}
        rows = self.rows(user_id).filter(**within)
        # Before the counts: if a row is added in between, the table is marked as cut.
        lines = [
            (
                f"{getattr(row, self.time).astimezone(period.zone):{self.time_format}}",
                *map(short, self.cells(row)),
            )
            for row in rows.order_by(f"-{self.time}", "-pk")[:MOST_LINES]
        ]
        by_day = rows.order_by().annotate(day=TruncDate(self.time, tzinfo=period.zone))
        groups = by_day.values_list(self.group, "day").annotate(Count("pk"))
        counts = {(choice, day): count for choice, day, count in groups}
        totals: Counter[Any] = Counter()
        for (choice, _day), count in counts.items():
            totals[choice] += count
        labels = {str(choice.label).lower(): totals[choice] for choice in self.choices}
        numbers = {self.name: totals.total(), **labels}
        return Content(self, numbers, lines, self.chart(counts, period))


def short(text: object) -> str:
    """Return the text in the form of a cell: on one line, at most MOST_TEXT characters."""
    words = " ".join(str(text).split())
    return words if len(words) <= MOST_TEXT else words[: MOST_TEXT - 1] + "…"
