"""The sections of a report: numbers, a table, and a chart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tailrace.domains.protection.services.reports.period import Period
from tailrace.environment.discovery import Described

MOST_LINES = 300
"""Maximum number of lines of a table. The other lines are only counted, and the report says so."""
MOST_TEXT = 200
"""Maximum number of characters of a cell."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a section. All of it is text, which the template escapes."""

    totals: Mapping[str, int]
    """Numbers by label. The first label is the section's name, with the number of all lines."""
    columns: Sequence[str] = ()
    lines: Sequence[Sequence[str]] = ()
    """The lines of the table, newest first."""
    series: Mapping[str, Mapping[object, int]] | None = None
    """The data of the chart: numbers by day, by label."""

    @property
    def count(self) -> int:
        return next(iter(self.totals.values()), 0)

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

    def collect(self, user_id: int, period: Period) -> Content:
        raise NotImplementedError


def short(text: object) -> str:
    """Return the text in the form of a cell: on one line, at most MOST_TEXT characters."""
    words = " ".join(str(text).split())
    return words if len(words) <= MOST_TEXT else words[: MOST_TEXT - 1] + "…"
