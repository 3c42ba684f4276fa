"""Google Takeout's Semantic Location History, one file per month, such as 2021_JANUARY.json."""

import re
from collections.abc import Iterator
from typing import Any

from tailrace.domains.timeline.imports.files.formats.base import Format
from tailrace.domains.timeline.imports.files.parsing.json_points import (
    Collector,
    collect,
    first,
    part,
    parts,
)
from tailrace.domains.timeline.imports.files.parsing.readable import Readable
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.parsing.values import unwrapped
from tailrace.domains.timeline.points.points import Point

_LIST = re.compile(rb'"timelineObjects"\s*:')


class Semantic(Format):
    """`timelineObjects[]` of visits and activities. The location of a visit becomes two points: at
    its beginning and at its end. Points of an activity that have no time are rejected."""

    name = "google_semantic"
    label = "Google Takeout, Semantic Location History"

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"{") and bool(_LIST.search(head))

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        return collect(file, tally, {"timelineObjects": _read})


def _read(item: Any, collector: Collector) -> None:
    if (segment := part(item, "activitySegment")) is not None:
        _read_segment(segment, collector)
    if (visit := part(item, "placeVisit")) is not None:
        _read_visit(visit, collector)


def _read_segment(segment: Any, collector: Collector) -> None:
    begin, end = _times(segment)
    _add(part(segment, "startLocation"), begin, collector)
    for point in parts(segment, "waypointPath", "waypoints"):
        _add(point, _time(point), collector)
    _read_path(segment, collector)
    _add(part(segment, "endLocation"), end, collector)


def _read_visit(visit: Any, collector: Collector) -> None:
    begin, end = _times(visit)
    location = part(visit, "location")
    _add(location, begin, collector)
    _read_path(visit, collector)
    _add(location, end, collector)
    for child in parts(visit, "childVisits"):
        begin, end = _times(child)
        _add(part(child, "location"), begin, collector)
        _add(part(child, "location"), end, collector)


def _read_path(item: Any, collector: Collector) -> None:
    for point in parts(item, "simplifiedRawPath", "points"):
        _add(point, _time(point), collector)


def _times(item: Any) -> tuple[Any, Any]:
    duration = part(item, "duration")
    return (
        first(duration, "startTimestamp", "startTimestampMs"),
        first(duration, "endTimestamp", "endTimestampMs"),
    )


def _time(point: Any) -> Any:
    return first(point, "timestamp", "timestampMs")


def _add(location: Any, time: Any, collector: Collector) -> None:
    if location is not None:
        collector.add(
            time,
            first(location, "latitudeE7", "latE7"),
            first(location, "longitudeE7", "lngE7"),
            unwrapped,
            accuracy=first(location, "accuracyMeters", "accuracyMetres"),
        )
