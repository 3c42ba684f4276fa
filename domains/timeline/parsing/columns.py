"""Read the values of many points at once, several times as fast as one by one.

All functions take a value for each point, and give what the functions of `values` give for each.
They raise one of UNUSUAL if a point needs a closer look: then all are to be read one by one.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from operator import mul
from typing import Any

from tailrace.domains.timeline.parsing.values import (
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
from tailrace.domains.timeline.points import EARLIEST, MAX_LAT, MAX_LON, SECOND, Point

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
    """Return the values under the first of the keys that any object has; all must have it, or all
    None if no object has any."""
    values: list[Any] = []
    for key in keys:
        values = [one.get(key) for one in objects]
        if None not in values:
            return values
        if {*map(type, values)} != _NOTHING:
            raise ValueError("only some have it")
    return values


def points(
    times: Sequence[int],
    lons: Sequence[int],
    lats: Sequence[int],
    latest: int,
    *measures: Iterable[float | None],
) -> list[Point]:
    """Return the points, whose measures are altitudes, accuracies, speeds and courses."""
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
    """`any_time` of each."""
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
    """`e7` of each; they are numbers or texts of numbers."""
    return list(map(round, map(mul, map(float, values), repeat(1e7))))


def lat_lons(texts: Sequence[str]) -> tuple[list[int], list[int]]:
    """`lat_lon` of each: latitudes and longitudes."""
    if not texts:
        return [], []
    pairs = _LAT_LON.findall("\n".join(texts))
    if len(pairs) != len(texts):
        raise ValueError("not all are pairs of coordinates")
    lats, lons = zip(*pairs, strict=True)
    return degrees(lats), degrees(lons)


def altitudes(values: Sequence[Any]) -> Measures:
    """`altitude` of each."""
    return _measures(values, altitude, MIN_ALTITUDE, MAX_ALTITUDE)


def accuracies(values: Sequence[Any]) -> Measures:
    """`accuracy` of each."""
    return _measures(values, accuracy, 0, MAX_ACCURACY)


def speeds(values: Sequence[Any]) -> Measures:
    """`speed` of each."""
    return _measures(values, speed, 0, MAX_SPEED)


def courses(values: Sequence[Any]) -> Measures:
    """`course` of each."""
    return _measures(values, course, 0, 360)


def _measures(
    values: Sequence[Any], convert: Callable[[object], float | None], low: float, high: float
) -> Measures:
    """`convert` of each, which returns numbers between the bounds as they are."""
    types = {*map(type, values)}
    if types <= _NOTHING:
        return values
    if types <= _NUMBERS_OR_NOTHING:
        numbers = [value for value in values if value is not None] if None in values else values
        if all(map(float(low).__le__, numbers)) and max(numbers) <= high:
            return values
    return [None if value is None else convert(value) for value in values]
