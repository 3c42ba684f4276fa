"""Convert requests of the phone apps OwnTracks, GPSLogger and Overland to points.

Each function takes the parsed JSON of a request, and returns the points and the numbers of rejected
points by reason.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from tailrace.db.times import parse_time
from tailrace.domains.timeline.points.points import (
    NO_COORDINATES,
    NO_TIME,
    OUT_OF_RANGE,
    UNPARSABLE,
    Point,
)

MAX_POINTS = 1000
Read = tuple[list[Point], Counter[str]]


class Unreadable(ValueError):
    """The point cannot be read; the message is one of `points.REASONS`."""


def own_tracks(body: Any) -> Read:
    """Read a location message of OwnTracks. Other messages of OwnTracks have no point."""
    if not isinstance(body, Mapping) or body.get("_type") != "location":
        return [], Counter()
    return _read([body], _own_tracks)


def gps_logger(body: Any) -> Read:
    """Read a point that GPSLogger sends to its custom URL."""
    return _read([body], _gps_logger)


def overland(body: Any) -> Read:
    """Read a batch of Overland: `locations` is a list of GeoJSON points.

    Raises ValueError for more than MAX_POINTS locations.
    """
    locations = body.get("locations") if isinstance(body, Mapping) else None
    if not isinstance(locations, list):
        return [], Counter({UNPARSABLE: 1})
    if len(locations) > MAX_POINTS:
        raise ValueError(f"the batch has {len(locations)} locations; the limit is {MAX_POINTS}")
    return _read(locations, _overland)


def degrees(value: Any) -> int:
    """Convert degrees to 1e-7 degrees. Raises Unreadable."""
    if value is None or value == "":
        raise Unreadable(NO_COORDINATES)
    number = _finite(value)
    if abs(number) > 180:
        raise Unreadable(OUT_OF_RANGE)
    return round(number * 1e7)


def microseconds(at: datetime) -> int:
    """Return microseconds since 1970."""
    return round(at.timestamp() * 1e6)


def _read(items: list[Any], read: Callable[[Mapping[str, Any]], Point]) -> Read:
    points, rejected = list[Point](), Counter[str]()
    for item in items:
        try:
            if not isinstance(item, Mapping):
                raise Unreadable(UNPARSABLE)
            points.append(read(item))
        except Unreadable as error:
            rejected[str(error)] += 1
    return points, rejected


def _own_tracks(item: Mapping[str, Any]) -> Point:
    seconds = item.get("tst")
    if seconds is None:
        raise Unreadable(NO_TIME)
    kilometres = _optional(item.get("vel"))
    return (
        _time(round(_finite(seconds) * 1_000_000)),
        degrees(item.get("lon")),
        degrees(item.get("lat")),
        _optional(item.get("alt")),
        _optional(item.get("acc")),
        None if kilometres is None else kilometres / 3.6,
        _optional(item.get("cog")),
    )


def _gps_logger(item: Mapping[str, Any]) -> Point:
    return (
        _moment(item.get("time") or item.get("timestamp")),
        degrees(item.get("lon") if "lon" in item else item.get("longitude")),
        degrees(item.get("lat") if "lat" in item else item.get("latitude")),
        _optional(item.get("alt", item.get("altitude"))),
        _optional(item.get("acc", item.get("accuracy"))),
        _optional(item.get("spd", item.get("speed"))),
        _optional(item.get("dir", item.get("bearing"))),
    )


def _overland(item: Mapping[str, Any]) -> Point:
    geometry, properties = item.get("geometry"), item.get("properties")
    if not isinstance(geometry, Mapping) or not isinstance(properties, Mapping):
        raise Unreadable(UNPARSABLE)
    coordinates = geometry.get("coordinates")
    if not isinstance(coordinates, list) or len(coordinates) < 2:
        raise Unreadable(NO_COORDINATES)
    return (
        _moment(properties.get("timestamp")),
        degrees(coordinates[0]),
        degrees(coordinates[1]),
        _optional(properties.get("altitude")),
        _positive(properties.get("horizontal_accuracy")),
        _positive(properties.get("speed")),
        _positive(properties.get("course")),
    )


def _moment(value: Any) -> int:
    if value is None or value == "":
        raise Unreadable(NO_TIME)
    try:
        if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
            return microseconds(parse_time(value))
    except ValueError:
        raise Unreadable(UNPARSABLE) from None
    return _time(round(_finite(value) * 1_000_000))


def _time(value: int) -> int:
    if abs(value) > 1 << 60:
        raise Unreadable(UNPARSABLE)
    return value


def _finite(value: Any) -> float:
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        raise Unreadable(UNPARSABLE) from None
    if not math.isfinite(number):
        raise Unreadable(UNPARSABLE)
    return number


def _optional(value: Any) -> float | None:
    """Return the number, or None if it is missing or invalid: a point is valid without it."""
    try:
        number = _finite(value)
    except Unreadable:
        return None
    return number if abs(number) < 1e9 else None


def _positive(value: Any) -> float | None:
    """Return the number, or None if it is negative: Overland sends -1 for unknown values."""
    number = _optional(value)
    return None if number is None or number < 0 else number


def point_of(at: datetime, lon: float, lat: float, *rest: float | None) -> Point:
    """Return the point with these values. `rest` is altitude, accuracy, speed and course."""
    altitude, accuracy, speed, course = rest
    return microseconds(at), round(lon * 1e7), round(lat * 1e7), altitude, accuracy, speed, course
