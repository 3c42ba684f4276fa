"""Google Takeout's Records.json: all positions that Google stored, up to 4 GB."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tailrace.domains.timeline.imports.files.formats.base import JsonFormat
from tailrace.domains.timeline.imports.files.parsing import columns
from tailrace.domains.timeline.imports.files.parsing.json_points import (
    Collector,
    measures_in,
    points_of,
)
from tailrace.domains.timeline.imports.files.parsing.json_stream import Items, JsonStream
from tailrace.domains.timeline.imports.files.parsing.readable import Readable
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.parsing.values import (
    epoch,
    iso_time,
    iso_times,
    unwrapped,
)
from tailrace.domains.timeline.points.points import UNPARSABLE, Point

LONGEST_TAG = 40
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


def _tags(records: Sequence[Any]) -> list[Any]:
    """Return the tag of each record's device, as it stands in the file."""
    return [record.get("deviceTag") if type(record) is dict else None for record in records]


def _counts(tags: Sequence[Any]) -> Counter[str]:
    """Return the number of each tag as text; "" counts the records without a usable tag."""
    try:
        known = Counter(tags)
    except TypeError:  # a list or an object is no tag
        return Counter(map(_text, tags))
    counts: Counter[str] = Counter()
    for tag, count in known.items():
        counts[_text(tag)] += count
    return counts


def _text(tag: object) -> str:
    return str(tag) if type(tag) in (int, str) and len(str(tag)) <= LONGEST_TAG else ""


def _points(items: Items, tally: Tally) -> list[Point]:
    """Return the points of the records with the tags that the tally wants."""
    tags = _tags(items.values)
    counts = _counts(tags)
    tally.count_tags(counts)
    if all(map(tally.tag_filter.wants, counts)):
        return points_of(items, tally, _read, _read_at_once)
    wanted = [index for index, tag in enumerate(tags) if tally.tag_filter.wants(_text(tag))]
    try:
        return _read_at_once([items.values[index] for index in wanted], tally.latest)
    except columns.UNUSUAL:
        collector = Collector(tally, items.place)
        for collector.index in wanted:
            _read(items.values[collector.index], collector)
        return collector.points


class Records(JsonFormat):
    """`locations[]` with `latitudeE7` and `longitudeE7`, and `deviceTag`, a number that Google gave
    to the device."""

    name = "google_records"
    label = "Google Takeout, Records.json"
    marks = re.compile(
        rb'"(?:latitudeE7|longitudeE7|timestampMs|deviceTag)"|"locations"\s*:\s*\[\s*\]'
    )
    lists = {"locations": _read}
    has_tags = True

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        for items in JsonStream(file).lists(self.lists):
            yield _points(items, tally)

    def recognises(self, head: bytes) -> bool:
        return super().recognises(head) and bool(_LIST.search(head))
