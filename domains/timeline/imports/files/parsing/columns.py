"""Convert the values of many points at once, several times as fast as one by one.

All functions take one value per point, and return the results of the corresponding function in
`values`. They raise one of UNUSUAL if a value is not simple: then convert the points one by one.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import mul
from typing import Any

from tailrace.domains.timeline.imports.files.parsing.values import (
    MAX_ACCURACY,
    MAX_ALTITUDE,
    MAX_SPEED,
    MIN_ALTITUDE,
    accuracy,
    altitude,
    any_time,
    course,
    iso_times,
    speed,
)
from tailrace.domains.timeline.points.points import EARLIEST, MAX_LAT, MAX_LON, SECOND, Point

UNUSUAL = (LookupError, TypeError, AttributeError, ValueError, OverflowError)
_LAT_LON = re.compile(
    r"^(?:geo:)?(-?\d{1,3}(?:\.\d{1,20})?)°?, ?(-?\d{1,3}(?:\.\d{1,20})?)°?$",
    re.MULTILINE | re.ASCII,
)
_NOTHING = {type(None)}
_NUMBERS_OR_NOTHING = {int, float, type(None)}
Measures = Sequence[float | None]
none: Iterable[None] = repeat(None)


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
    *measures: Iterable[float | None],
) -> list[Point]:
    """Return the points. `measures` are altitudes, accuracies, speeds and courses."""
    if not times:
        return []
    if (
        max(lats) > MAX_LAT
        or min(lats) < -MAX_LAT
        or max(lons) > MAX_LON
        or min(lons) < -MAX_LON
        or min(times) < EARLIEST
        or max(times) > latest
    ):
        raise ValueError("out of range")
    return list(zip(times, lons, lats, *measures))  # noqa: B905 -- `none` is endless


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
    """`e7` of each value. The values are numbers, or strings of numbers."""
    return list(map(round, map(mul, map(float, values), repeat(1e7))))


def lat_lons(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """`lat_lon` of each text: a list of latitudes and a list of longitudes."""
    if not texts:
        return [], []
    pairs = _LAT_LON.findall("\n".join(texts))
    if len(pairs) != len(texts):
        raise ValueError("not all texts are pairs of coordinates")
    lats, lons = zip(*pairs, strict=True)
    return degrees(lats), degrees(lons)


def altitudes(values: Sequence[Any]) -> Measures:
    """`altitude` of each value."""
    return _measures(values, altitude, MIN_ALTITUDE, MAX_ALTITUDE)


def accuracies(values: Sequence[Any]) -> Measures:
    """`accuracy` of each value."""
    return _measures(values, accuracy, 0, MAX_ACCURACY)


def speeds(values: Sequence[Any]) -> Measures:
    """`speed` of each value."""
    return _measures(values, speed, 0, MAX_SPEED)


def courses(values: Sequence[Any]) -> Measures:
    """`course` of each value."""
    return _measures(values, course, 0, 360)


def _measures(
    values: Sequence[Any], convert: Callable[[object], float | None], low: float, high: float
) -> Measures:
    """`convert` of each value. It must return numbers between the bounds unchanged, so that a list
    of such numbers needs no conversion."""
    types = {*map(type, values)}
    if types <= _NOTHING:
        return values
    if types <= _NUMBERS_OR_NOTHING:
        numbers = [value for value in values if value is not None] if None in values else values
        if all(map(float(low).__le__, numbers)) and max(numbers) <= high:
            return values
    return [None if value is None else convert(value) for value in values]
