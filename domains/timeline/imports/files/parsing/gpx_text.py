"""Read GPX points with regular expressions, which match only well-formed, simple points."""

import re
from collections.abc import Sequence

from tailrace.domains.timeline.imports.files.parsing import columns
from tailrace.domains.timeline.imports.files.parsing.values import checked_measures, iso_times
from tailrace.domains.timeline.points.points import Point

_PLAIN = re.compile(
    r"""
    (<trkpt [ \t\r\n]+ lat="([-+.\deE]*)" [ \t\r\n]+ lon="([-+.\deE]*)" [ \t\r\n]* > [ \t\r\n]*
    (?: <ele> ([-+.\deE]*) </ele> [ \t\r\n]* )?
    <time> ([-+.:\dTZ]*) </time> [ \t\r\n]*
    (?: < (hdop|vdop|pdop|sat|fix|src|geoidheight|magvar) > [-+.\w]* </\6> [ \t\r\n]* )*
    </trkpt> [ \t\r\n]*)
    """,
    re.VERBOSE | re.ASCII,
)
"""A point with the common elements only."""
_WITH_MORE = re.compile(
    r"""
    (<trkpt [ \t\r\n]+ lat="([-+.\deE]*)" [ \t\r\n]+ lon="([-+.\deE]*)" [ \t\r\n]* > [ \t\r\n]*
    (?: <ele> ([-+.\deE]*) </ele> [ \t\r\n]* )?
    <time> ([-+.:\dTZ]*) </time> [ \t\r\n]*
    ((?: <([A-Za-z_][-:.\w]*+)> (?: [-+.:\w]++ | [ \t\r\n]*+
      (?: <([A-Za-z_][-:.\w]*+)> (?: [-+.:\w]++ | [ \t\r\n]*+
        (?: <([A-Za-z_][-:.\w]*+)> [-+.:\w]*+ </\9> [ \t\r\n]*+ )*+
      ) </\8> [ \t\r\n]*+ )*+
    ) </\7> [ \t\r\n]*+ )*+)
    </trkpt> [ \t\r\n]*)
    """,
    re.VERBOSE | re.ASCII,
)
"""The same with further elements at the end, such as extensions."""
_REPEATED_TAGS = ("ele>", "time>", "trkpt>", "rtept>")
_MEASURE = re.compile(r"<(?:[-:.\w]*:)?(speed|course|accuracy)>([-+.:\w]*)</")


class GpxText:
    def __init__(self, latest: int) -> None:
        self._latest = latest
        self._pattern = _PLAIN

    def read(self, text: str) -> list[Point]:
        """Return the points of a text that contains only points. Raises one of UNUSUAL."""
        elements = self._elements(text)
        _, lats, lons, eles, times, others, *_ = zip(*elements, strict=True)
        points = points_of_values(lats, lons, eles, times, self._latest)
        return points if self._pattern is _PLAIN else _with_measures(points, others)

    def _elements(self, text: str) -> list[tuple[str, ...]]:
        """Return the matches of all points in the text. The pattern that matched the previous piece
        is tried first."""
        patterns = (_PLAIN, _WITH_MORE) if self._pattern is _PLAIN else (_WITH_MORE, _PLAIN)
        for self._pattern in patterns:
            elements = self._pattern.findall(text)
            if elements and sum([len(element[0]) for element in elements]) == len(text):
                return elements
        raise ValueError("not only points")


def points_of_values(
    lats: Sequence[str], lons: Sequence[str], eles: Sequence[str], times: Sequence[str], latest: int
) -> list[Point]:
    """Return the points with these values. Raises one of UNUSUAL."""
    degrees = columns.degrees(lons), columns.degrees(lats)
    return columns.points(iso_times(times), *degrees, latest, {"altitude": eles})


def _with_measures(points: list[Point], others: Sequence[str]) -> list[Point]:
    """Return the points with the accuracies, speeds and courses from their other elements."""
    joined = "".join(others)
    if any(name in joined for name in _REPEATED_TAGS):
        raise ValueError("a second altitude, time or point")
    count = sum(map(joined.count, ("speed>", "course>", "accuracy>")))
    if not count:
        return points
    measures = list(map(_MEASURE.findall, others))
    if 2 * sum(map(len, measures)) != count:
        raise ValueError("a measure that is not simple")
    # If an element occurs twice, the first one counts.
    fields = (dict(reversed(pairs)) for pairs in measures)
    return [
        (*point[:4], *checked_measures(values)[1:])
        for point, values in zip(points, fields, strict=True)
    ]
