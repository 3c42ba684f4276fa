"""location-history.json, which Google Maps on iPhones exports since 2024."""

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
from tailrace.domains.timeline.imports.files.parsing.values import any_time, decimal
from tailrace.domains.timeline.points.points import Point

_MARKS = re.compile(rb'"geo:-?\d|"durationMinutesOffsetFromStartTime"|"timelineMemory"')
_MINUTE = 60_000_000


class LocationHistory(Format):
    """A list of visits, activities and paths with "geo:lat,lon". The time of a point in a path is a
    number of minutes after the beginning of the path."""

    name = "google_location_history"
    label = "Google Timeline of an iPhone"

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"[") and bool(_MARKS.search(head))

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        return collect(file, tally, {"": _read})


def _read(item: Any, collector: Collector) -> None:
    begin, end = first(item, "startTime"), first(item, "endTime")
    for point in parts(item, "timelinePath"):
        time = first(point, "time")
        if time is None:
            time = _time_in_path(begin, first(point, "durationMinutesOffsetFromStartTime"))
        collector.add_text(time, first(point, "point"))
    place = part(item, "visit", "topCandidate", "placeLocation")
    if place is not None:
        collector.add_text(begin, place)
        collector.add_text(end, place)
    for key, time in (("start", begin), ("end", end)):
        if (location := part(item, "activity", key)) is not None:
            collector.add_text(time, location)


def _time_in_path(begin: object, minutes: object) -> object:
    """Return the time `minutes` after the beginning of a path. For unreadable values, return a
    value that the collector rejects."""
    if begin is None or minutes is None:
        return None
    try:
        return any_time(begin) + round(decimal(minutes) * _MINUTE)
    except ValueError:
        return "unreadable"
