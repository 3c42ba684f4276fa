"""Timeline.json, which Android phones export since 2024."""

import re
from collections.abc import Iterator
from typing import Any

from tailrace.domains.timeline.imports.files.formats.base import Format
from tailrace.domains.timeline.imports.files.parsing import columns
from tailrace.domains.timeline.imports.files.parsing.json_points import (
    Collector,
    collect,
    first,
    part,
    parts,
)
from tailrace.domains.timeline.imports.files.parsing.readable import Readable
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.points.points import Point

_KEYS = re.compile(rb'"(?:semanticSegments|rawSignals|userLocationProfile)"\s*:')


class AndroidTimeline(Format):
    """`semanticSegments[]` and `rawSignals[]` with coordinates as strings."""

    name = "google_timeline"
    label = "Google Timeline of an Android phone"

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"{") and bool(_KEYS.search(head))

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        lists = {"semanticSegments": _read_segment, "rawSignals": _read_signal}
        return collect(file, tally, lists, at_once={"rawSignals": _read_signals})


def _read_segment(segment: Any, collector: Collector) -> None:
    begin, end = first(segment, "startTime"), first(segment, "endTime")
    for point in parts(segment, "timelinePath"):
        collector.add_text(first(point, "time"), first(point, "point"))
    place = part(segment, "visit", "topCandidate", "placeLocation")
    if place is not None:
        text = first(place, "latLng", "LatLng") if isinstance(place, dict) else place
        collector.add_text(begin, text)
        collector.add_text(end, text)
    for key, time in (("start", begin), ("end", end)):
        if (location := part(segment, "activity", key)) is not None:
            text = first(location, "latLng", "LatLng") if isinstance(location, dict) else location
            collector.add_text(time, text)


def _read_signal(signal: Any, collector: Collector) -> None:
    position = part(signal, "position")
    if position is not None:
        collector.add_text(
            first(position, "timestamp"),
            first(position, "LatLng", "latLng"),
            altitude=first(position, "altitudeMeters"),
            accuracy=first(position, "accuracyMeters"),
            speed=first(position, "speedMetersPerSecond"),
        )


def _read_signals(signals: list[Any], latest: int) -> list[Point]:
    """Return the points of the signals at once. Raises one of UNUSUAL if a signal is not simple:
    then use `_read_signal` for each signal."""
    positions = [signal["position"] for signal in signals if "position" in signal]
    lats, lons = columns.lat_lons(columns.members(positions, "LatLng", "latLng"))
    return columns.points(
        columns.any_times(columns.members(positions, "timestamp")),
        lons,
        lats,
        latest,
        columns.altitudes([position.get("altitudeMeters") for position in positions]),
        columns.accuracies([position.get("accuracyMeters") for position in positions]),
        columns.speeds([position.get("speedMetersPerSecond") for position in positions]),
        columns.none,
    )
