"""Read requests of the phone apps OwnTracks, GPSLogger and Overland.

Each function takes the parsed JSON of a request, and adds its points to a collector. Phones send
points as they are made, so values are read more strictly than in files: a number has no decimal
comma, a number as time is in seconds, and a time as text has a time zone.
"""

from typing import Any

from tailrace.db.times import parse_time
from tailrace.domains.timeline.imports.files.formats import owntracks
from tailrace.domains.timeline.imports.files.parsing.json_points import (
    Collector,
    first,
    measures_in,
    part,
    parts,
)
from tailrace.domains.timeline.imports.files.parsing.values import (
    decimal,
    e7,
    microseconds,
    plain_float,
)
from tailrace.domains.timeline.points.points import SECOND, UNPARSABLE

MAX_POINTS = 1000
"""Maximum points per request."""
MAX_SECONDS = 1e12  # the present time in milliseconds is larger
_OVERLAND = {
    "altitude": "altitude",
    "accuracy": "horizontal_accuracy",
    "speed": "speed",
    "course": "course",
}


def own_tracks(body: Any, collector: Collector) -> None:
    """Read a location message of OwnTracks. Other messages of OwnTracks have no point."""
    if part(body, "_type") == "location":
        time, lat, lon = body.get("tst"), body.get("lat"), body.get("lon")
        collector.add(time, lat, lon, _degrees, _time, **owntracks.measures_of(body))


def gps_logger(body: Any, collector: Collector) -> None:
    """Read a point that GPSLogger sends to its custom URL."""
    if not isinstance(body, dict):
        return collector.reject(UNPARSABLE, body)
    measures = {
        "altitude": first(body, "alt", "altitude"),
        "accuracy": first(body, "acc", "accuracy"),
        "speed": first(body, "spd", "speed"),
        "course": first(body, "dir", "bearing"),
    }
    time = body.get("time") or body.get("timestamp")
    lat, lon = first(body, "lat", "latitude"), first(body, "lon", "longitude")
    collector.add(time, lat, lon, _degrees, _time, **measures)


def overland(body: Any, collector: Collector) -> None:
    """Read a batch of Overland: `locations` is a list of GeoJSON points.

    Raises ValueError for more than MAX_POINTS locations.
    """
    locations = part(body, "locations")
    if not isinstance(locations, list):
        return collector.reject(UNPARSABLE, body)
    if len(locations) > MAX_POINTS:
        raise ValueError(f"the batch has {len(locations)} locations; the limit is {MAX_POINTS}")
    for location in locations:
        geometry, properties = part(location, "geometry"), part(location, "properties")
        if isinstance(geometry, dict) and isinstance(properties, dict):
            lon, lat, *_ = *parts(geometry, "coordinates"), None, None
            time, measures = properties.get("timestamp"), measures_in(properties, _OVERLAND)
            collector.add(time, lat, lon, _degrees, _time, **measures)
        else:
            collector.reject(UNPARSABLE, location)


def _degrees(value: object) -> int:
    return e7(_number(value))


def _time(value: object) -> int:
    if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
        return microseconds(parse_time(value))
    if abs(seconds := _number(value)) > MAX_SECONDS:
        raise ValueError("not seconds since 1970")
    return round(seconds * SECOND)


def _number(value: object) -> float:
    return decimal(plain_float(value) if isinstance(value, str) else value)
