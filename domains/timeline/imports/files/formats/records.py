"""Google Takeout's Records.json: all positions that Google stored, up to 4 GB."""

import re
from collections.abc import Iterator
from typing import Any

from tailrace.domains.timeline.imports.files.formats.base import Format
from tailrace.domains.timeline.imports.files.parsing import columns
from tailrace.domains.timeline.imports.files.parsing.json_stream import Items, JsonStream
from tailrace.domains.timeline.imports.files.parsing.readable import Readable
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.parsing.values import (
    accuracy,
    altitude,
    course,
    epoch,
    iso_time,
    iso_times,
    speed,
    unwrapped,
    why_unreadable,
)
from tailrace.domains.timeline.points.points import UNPARSABLE, Point, fault

_LIST = re.compile(rb'"locations"\s*:\s*\[')
_MARKS = re.compile(
    rb'"(?:latitudeE7|longitudeE7|timestampMs|deviceTag)"|"locations"\s*:\s*\[\s*\]'
)


class Records(Format):
    """`locations[]` with `latitudeE7` and `longitudeE7`."""

    name = "google_records"
    label = "Google Takeout, Records.json"

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"{") and bool(_LIST.search(head)) and bool(_MARKS.search(head))

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        for items in JsonStream(file).lists(["locations"]):
            try:
                points = _points_at_once(items.values, tally.latest)
            except columns.UNUSUAL:
                points = _points(items, tally)
            yield points


def _points_at_once(records: list[Any], latest: int) -> list[Point]:
    """Return the points of the records at once. Raises one of UNUSUAL if a record is not simple."""
    lats = [record["latitudeE7"] for record in records]
    lons = [record["longitudeE7"] for record in records]
    if {*map(type, lats), *map(type, lons)} - {int}:
        raise ValueError("not all coordinates are whole numbers")
    return columns.points(
        iso_times([record["timestamp"] for record in records]),
        lons,
        lats,
        latest,
        columns.altitudes([record.get("altitude") for record in records]),
        columns.accuracies([record.get("accuracy") for record in records]),
        columns.speeds([record.get("velocity") for record in records]),
        columns.courses([record.get("heading") for record in records]),
    )


def _points(items: Items, tally: Tally) -> list[Point]:
    points: list[Point] = []
    latest = tally.latest
    for index, record in enumerate(items.values):
        try:
            lat = unwrapped(record["latitudeE7"])
            lon = unwrapped(record["longitudeE7"])
            time = record.get("timestamp")
            recorded_at = iso_time(time) if time is not None else epoch(record["timestampMs"])
        except (KeyError, TypeError, AttributeError, ValueError):
            tally.reject(_rejection_reason(record), record, **items.place(index))
            continue
        reason = fault(recorded_at, lon, lat, latest)
        if reason is not None:
            tally.reject(reason, record, **items.place(index))
            continue
        get = record.get
        above_sea, within = get("altitude"), get("accuracy")
        velocity, heading = get("velocity"), get("heading")
        points.append(
            (
                recorded_at,
                lon,
                lat,
                None if above_sea is None else altitude(above_sea),
                None if within is None else accuracy(within),
                None if velocity is None else speed(velocity),
                None if heading is None else course(heading),
            )
        )
    return points


def _rejection_reason(record: Any) -> str:
    if not isinstance(record, dict):
        return UNPARSABLE
    time = record.get("timestamp", record.get("timestampMs"))
    return why_unreadable(time, record.get("latitudeE7"), record.get("longitudeE7"))
