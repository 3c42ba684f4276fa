"""Convert the values of many points at once, several times as fast as one by one.

All functions take one value per point, and return the results of the corresponding function in
`values`. They raise one of UNUSUAL if a value is not simple: then convert the points one by one.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import mul
from typing import Any

from tailrace.domains.timeline.imports.files.parsing.values import (
    LIMITS,
    any_time,
    is_plain,
    iso_times,
    measure,
)
from tailrace.domains.timeline.points.points import EARLIEST, SECOND, Point, fault

UNUSUAL = (LookupError, TypeError, AttributeError, ValueError, OverflowError)
_LAT_LON = re.compile(
    r"^(?:geo:)?(-?\d{1,3}(?:\.\d{1,20})?)°?, ?(-?\d{1,3}(?:\.\d{1,20})?)°?$",
    re.MULTILINE | re.ASCII,
)
_LAT_LON_E7 = re.compile(r"(?:-?\d{1,3}\.\d{7}°, -?\d{1,3}\.\d{7}°\n)*", re.ASCII)
"""Lines of coordinates as Android phones write them: all with seven decimals."""
_NOTHING = {type(None)}
_NUMBERS_OR_NOTHING = {int, float, type(None)}
_NONE: Iterable[None] = repeat(None)


def members(objects: Sequence[dict[str, Any]], *keys: str) -> list[Any]:
    """Return the objects' values under the first of the keys that they have.

    Returns a list of None if no object has any of the keys. Raises ValueError if only some objects
    have the key.
    """
    values: list[Any] = []
    for key in keys:
        values = [item.get(key) for item in objects]
        if None not in values:
            return values
        if {*map(type, values)} != _NOTHING:
            raise ValueError("only some objects have the key")
    return values


def points(
    times: Sequence[int],
    lons: Sequence[int],
    lats: Sequence[int],
    latest: int,
    measures: Mapping[str, Sequence[Any]],
) -> list[Point]:
    """Return the points. `measures` maps some of the names in LIMITS to a value for each point."""
    if not times:
        return []
    lowest, highest = (min(times), min(lons), min(lats)), (max(times), max(lons), max(lats))
    if fault(*lowest, latest) or fault(*highest, latest):
        raise ValueError("out of range")
    columns = [_measures(each, measures[each]) if each in measures else _NONE for each in LIMITS]
    return list(zip(times, lons, lats, *columns))  # noqa: B905 -- `_NONE` is endless


def measures_of(
    objects: Sequence[dict[str, Any]], names: Mapping[str, str]
) -> dict[str, Sequence[Any]]:
    """Return the measures of objects for `points`. `names` maps measures to keys of the objects."""
    return {name: [item.get(key) for item in objects] for name, key in names.items()}


def any_times(values: Sequence[Any]) -> list[int]:
    """`any_time` of each value."""
    types = {*map(type, values)}
    if types == {str}:
        return iso_times(values, any_time)
    if types == {int} and min(values) * SECOND >= EARLIEST:
        if max(values) < 10**11:
            return [value * SECOND for value in values]
        if min(values) >= 10**11 and max(values) < 10**14:
            return [value * 1000 for value in values]
    return [any_time(value) for value in values]


def degrees(values: Iterable[str | float]) -> list[int]:
    """`e7` of each value. The values are numbers, or strings of numbers that `is_plain` accepts."""
    return list(map(round, map(mul, map(float, values), repeat(1e7))))


def plain_floats(texts: Sequence[str]) -> list[float]:
    """`plain_float` of each text."""
    if not is_plain("".join(texts)):
        raise ValueError("not all texts are plain numbers")
    return list(map(float, texts))


def lat_lons(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """`lat_lon` of each text: a list of latitudes and a list of longitudes."""
    if not texts:
        return [], []
    lines = "\n".join(texts)
    if _LAT_LON_E7.fullmatch(f"{lines}\n"):
        digits = lines.replace(".", "").replace("°", "").replace(", ", "\n")
        numbers = list(map(int, digits.split("\n")))
        if len(numbers) == 2 * len(texts):
            return numbers[::2], numbers[1::2]
    pairs = _LAT_LON.findall(lines)
    if len(pairs) != len(texts):
        raise ValueError("not all texts are pairs of coordinates")
    lats, lons = zip(*pairs, strict=True)
    return degrees(lats), degrees(lons)


def _measures(name: str, values: Sequence[Any]) -> Sequence[float | None]:
    """`measure` of each value. Numbers within the bounds need no conversion."""
    low, high = LIMITS[name]
    types = {*map(type, values)}
    if types == {str}:
        try:
            values = plain_floats(values)
        except ValueError:
            return [measure(name, value) for value in values]
        types = {float}
    if types <= _NOTHING:
        return values
    if types <= _NUMBERS_OR_NOTHING:
        numbers = [value for value in values if value is not None] if None in values else values
        total = sum(numbers)  # one that is no number makes it none
        if total == total and low <= min(numbers) and max(numbers) <= high:
            return values
    return [measure(name, value) for value in values]
