"""Google's exports of timelines: of Android phones, of iPhones, and two of Takeout."""

import re
from typing import Any

from tailrace.domains.timeline.imports.files.formats.base import JsonFormat
from tailrace.domains.timeline.imports.files.parsing import columns
from tailrace.domains.timeline.imports.files.parsing.json_points import (
    Collector,
    first,
    measures_in,
    part,
    parts,
)
from tailrace.domains.timeline.imports.files.parsing.values import (
    any_time,
    decimal,
    divided,
    unwrapped,
)
from tailrace.domains.timeline.points.points import Point

_MINUTE = 60_000_000
_SIGNAL_MEASURES = {
    "altitude": "altitudeMeters",
    "accuracy": "accuracyMeters",
    "speed": "speedMetersPerSecond",
}


def _read_segment(segment: Any, collector: Collector) -> None:
    """Read a path, a visit or an activity of a phone's timeline."""
    begin, end = first(segment, "startTime"), first(segment, "endTime")
    for point in parts(segment, "timelinePath"):
        time = first(point, "time")
        if time is None:
            time = _time_in_path(begin, first(point, "durationMinutesOffsetFromStartTime"))
        collector.add_text(time, first(point, "point"))
    visit = part(segment, "visit", "topCandidate", "placeLocation")
    start, goal = part(segment, "activity", "start"), part(segment, "activity", "end")
    for time, place in ((begin, visit), (end, visit), (begin, start), (end, goal)):
        if place is not None:
            text = first(place, "latLng", "LatLng") if isinstance(place, dict) else place
            collector.add_text(time, text)


def _time_in_path(begin: object, minutes: object) -> object:
    """Return the time `minutes` after the beginning of a path. For unreadable values, return a
    value that the collector rejects."""
    if begin is None or minutes is None:
        return None
    try:
        return any_time(begin) + round(decimal(minutes) * _MINUTE)
    except ValueError:
        return "unreadable"


def _read_signal(signal: Any, collector: Collector) -> None:
    position = part(signal, "position")
    if position is not None:
        time, text = first(position, "timestamp"), first(position, "LatLng", "latLng")
        collector.add_text(time, text, **measures_in(position, _SIGNAL_MEASURES))


def _read_signals(signals: list[Any], latest: int) -> list[Point]:
    """Return the points of the signals at once. Raises one of UNUSUAL if a signal is not simple:
    then use `_read_signal` for each signal."""
    positions = [signal["position"] for signal in signals if "position" in signal]
    lats, lons = columns.lat_lons(columns.members(positions, "LatLng", "latLng"))
    times = columns.any_times(columns.members(positions, "timestamp"))
    measures = columns.measures_of(positions, _SIGNAL_MEASURES)
    return columns.points(times, lons, lats, latest, measures)


class AndroidTimeline(JsonFormat):
    """Timeline.json, which Android phones export since 2024: `semanticSegments[]` and
    `rawSignals[]` with coordinates as strings."""

    name = "google_timeline"
    label = "Google Timeline of an Android phone"
    marks = re.compile(rb'"(?:semanticSegments|rawSignals|userLocationProfile)"\s*:')
    lists = {"semanticSegments": _read_segment, "rawSignals": _read_signal}
    at_once = {"rawSignals": _read_signals}


class LocationHistory(JsonFormat):
    """location-history.json, which Google Maps on iPhones exports since 2024: a list of visits,
    activities and paths with "geo:lat,lon". The time of a point in a path is a number of minutes
    after the beginning of the path."""

    name = "google_location_history"
    label = "Google Timeline of an iPhone"
    begins = b"["
    marks = re.compile(rb'"geo:-?\d|"durationMinutesOffsetFromStartTime"|"timelineMemory"')
    lists = {"": _read_segment}


def _read_edit(item: Any, collector: Collector) -> None:
    position = part(item, "rawSignal", "signal", "position")
    if position is None:
        return
    point = part(position, "point")
    collector.add(
        first(position, "timestamp"),
        first(point, "latE7", "latitudeE7"),
        first(point, "lngE7", "longitudeE7"),
        unwrapped,
        altitude=first(position, "altitudeMeters"),
        accuracy=divided(first(position, "accuracyMm"), 1000),
        speed=first(position, "speedMetersPerSecond"),
    )


class TimelineEdits(JsonFormat):
    """Takeout's Timeline Edits.json, the positions that Google's servers keep since 2024. Edits
    without a position, e.g. of visits, are ignored."""

    name = "google_timeline_edits"
    label = "Google Takeout, Timeline Edits"
    marks = re.compile(rb'"timelineEdits"\s*:')
    lists = {"timelineEdits": _read_edit}


def _read_object(item: Any, collector: Collector) -> None:
    visit = part(item, "placeVisit")
    for each in (part(item, "activitySegment"), visit, *parts(visit, "childVisits")):
        duration = part(each, "duration")
        begin = first(duration, "startTimestamp", "startTimestampMs")
        _add(first(each, "startLocation", "location"), begin, collector)
        for path in (("waypointPath", "waypoints"), ("simplifiedRawPath", "points")):
            for point in parts(each, *path):
                _add(point, first(point, "timestamp", "timestampMs"), collector)
        end = first(duration, "endTimestamp", "endTimestampMs")
        _add(first(each, "endLocation", "location"), end, collector)


def _add(location: Any, time: Any, collector: Collector) -> None:
    if location is not None:
        collector.add(
            time,
            first(location, "latitudeE7", "latE7"),
            first(location, "longitudeE7", "lngE7"),
            unwrapped,
            accuracy=first(location, "accuracyMeters", "accuracyMetres"),
        )


class Semantic(JsonFormat):
    """Takeout's Semantic Location History, one file per month, such as 2021_JANUARY.json:
    `timelineObjects[]` of visits and activities. The location of a visit becomes two points: at its
    beginning and at its end. Points of an activity that have no time are rejected."""

    name = "google_semantic"
    label = "Google Takeout, Semantic Location History"
    marks = re.compile(rb'"timelineObjects"\s*:')
    lists = {"timelineObjects": _read_object}
