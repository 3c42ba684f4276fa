"""What a section of a report brings: numbers, a table, and a chart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tailrace.domains.protection.reports.period import Period
from tailrace.events.discovery import Described

MOST_LINES = 300
"""Lines of a section's table: the rest is counted, and the report says so."""
MOST_TEXT = 200
"""Characters of a cell."""


@dataclass(frozen=True, slots=True)
class Content:
    """What stands in a section. All of it is text: the template escapes it."""

    totals: Mapping[str, int]
    """By label. The first has the section's name as its label, and counts all lines there are."""
    columns: Sequence[str] = ()
    lines: Sequence[Sequence[str]] = ()
    """Of the table, the newest first."""
    series: Mapping[str, Mapping[object, int]] | None = None
    """Of the chart: a number by day, by label."""

    @property
    def count(self) -> int:
        return next(iter(self.totals.values()), 0)

    @property
    def is_cut(self) -> bool:
        return len(self.lines) < self.count


class Section(Described):
    """A part of a report. Its docstring says what stands in it, for the person to read."""

    name: ClassVar[str]
    title: ClassVar[str]
    order: ClassVar[int]
    empty: ClassVar[str]
    """What stands there if there is nothing."""

    def collect(self, user_id: int, period: Period) -> Content:
        raise NotImplementedError


def short(text: object) -> str:
    """Return the text as it stands in a cell."""
    words = " ".join(str(text).split())
    return words if len(words) <= MOST_TEXT else words[: MOST_TEXT - 1] + "…"
