"""Google Takeout's Records.json: all positions that Google stored, up to 4 GB."""

import re
from collections.abc import Callable
from typing import Any

from tailrace.domains.timeline.imports.files.formats.base import JsonFormat
from tailrace.domains.timeline.imports.files.parsing import columns
from tailrace.domains.timeline.imports.files.parsing.json_points import Collector, measures_in
from tailrace.domains.timeline.imports.files.parsing.values import (
    epoch,
    iso_time,
    iso_times,
    unwrapped,
)
from tailrace.domains.timeline.points.points import UNPARSABLE, Point

_LIST = re.compile(rb'"locations"\s*:\s*\[')
_TIMES: dict[str, Callable[[object], int]] = {"timestamp": iso_time, "timestampMs": epoch}
"""How times are read, by their keys. Older files have `timestampMs`, a number since 1970."""
_MEASURES = {
    "altitude": "altitude",
    "accuracy": "accuracy",
    "speed": "velocity",
    "course": "heading",
}


def _read(record: Any, collector: Collector) -> None:
    if not isinstance(record, dict):
        return collector.reject(UNPARSABLE, record)
    key = "timestampMs" if record.get("timestamp") is None else "timestamp"
    lat, lon = record.get("latitudeE7"), record.get("longitudeE7")
    measures = measures_in(record, _MEASURES)
    collector.add(record.get(key), lat, lon, unwrapped, _TIMES[key], item=record, **measures)


def _read_at_once(records: list[Any], latest: int) -> list[Point]:
    """Return the points of the records at once. Raises one of UNUSUAL if a record is not simple."""
    lats = [record["latitudeE7"] for record in records]
    lons = [record["longitudeE7"] for record in records]
    if {*map(type, lats), *map(type, lons)} - {int}:
        raise ValueError("not all coordinates are whole numbers")
    times = [record.get("timestamp") for record in records]
    if times.count(None) == len(times):
        numbers = [epoch(record["timestampMs"]) for record in records]
    else:
        numbers = iso_times(times)
    return columns.points(numbers, lons, lats, latest, columns.measures_of(records, _MEASURES))


class Records(JsonFormat):
    """`locations[]` with `latitudeE7` and `longitudeE7`."""

    name = "google_records"
    label = "Google Takeout, Records.json"
    marks = re.compile(
        rb'"(?:latitudeE7|longitudeE7|timestampMs|deviceTag)"|"locations"\s*:\s*\[\s*\]'
    )
    lists = {"locations": _read}
    at_once = {"locations": _read_at_once}

    def recognises(self, head: bytes) -> bool:
        return super().recognises(head) and bool(_LIST.search(head))
