"""The files of the OwnTracks recorder, and messages of OwnTracks, one per line."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tailrace.domains.timeline.imports.files.formats.base import Format, JsonFormat
from tailrace.domains.timeline.imports.files.parsing import columns
from tailrace.domains.timeline.imports.files.parsing.json_points import (
    Collector,
    first,
    measures_in,
)
from tailrace.domains.timeline.imports.files.parsing.lines import Lines, first_object
from tailrace.domains.timeline.imports.files.parsing.readable import Readable
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.parsing.values import divided
from tailrace.domains.timeline.imports.files.parsing.whole_items import decode
from tailrace.domains.timeline.points.points import UNPARSABLE, Point

_BEFORE = rb"(?:(\d{4}-\d\d-\d\d\S*)[ \t]+\S+[ \t]+)?"
"""Time and topic, which .rec files have before each message."""
_LINE = re.compile(_BEFORE + rb"(\{.*)")
_LINES = re.compile(rb"^" + _BEFORE + rb"(\{.*)$", re.MULTILINE)
_LIST = re.compile(rb'\[|\{[^\[{]*"(?:data|locations)"\s*:\s*\[')
_MEASURES = {"altitude": "alt", "accuracy": "acc", "speed": "vel", "course": "cog"}
_KILOMETRES = 3.6
"""Kilometres per hour in one metre per second."""
_decode = json.JSONDecoder().decode


class OwnTracks(Format):
    """Lines of `ISO time, *, {json}`, separated by tabs or spaces: one file per month. Or lines of
    `{json}`, as programs log messages. Only messages of the type location are read; others (last
    will, waypoints, transitions) are ignored."""

    name = "owntracks_rec"
    label = "OwnTracks recorder"

    def recognises(self, head: bytes) -> bool:
        line = _LINE.match(head)
        if line is None or line[1] is not None:
            return line is not None
        return "_type" in first_object(head)

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        lines = Lines(file, _message)
        while not lines.ended:
            error = lines.read()
            try:
                points = _points_at_once(lines.lines, tally.latest)
            except columns.UNUSUAL:
                points = _points(lines, tally)
            yield points
            if error is not None:
                raise error


def _points_at_once(lines: list[bytes], latest: int) -> list[Point]:
    """Return the points of the lines at once. Raises one of UNUSUAL if a line is not simple."""
    matches = _LINES.findall(b"\n".join(lines))
    if len(matches) != len(lines):
        raise ValueError("not all lines are messages")
    return _read_messages([decode(message) for _, message in matches], latest)


def _read_messages(every: list[Any], latest: int) -> list[Point]:
    """Return the points of the messages at once. Raises one of UNUSUAL if one is not simple."""
    messages = [item for item in every if item.get("_type") == "location"]
    lats = [message["lat"] for message in messages]
    lons = [message["lon"] for message in messages]
    if {*map(type, lats), *map(type, lons)} - {float, int}:
        raise ValueError("not all coordinates are numbers")
    measures = columns.measures_of(messages, _MEASURES)
    if {*map(type, measures["speed"])} - {type(None)}:
        measures["speed"] = [divided(value, _KILOMETRES) for value in measures["speed"]]
    times = columns.any_times([message["tst"] for message in messages])
    return columns.points(times, columns.degrees(lons), columns.degrees(lats), latest, measures)


def _points(lines: Lines, tally: Tally) -> list[Point]:
    collector = Collector(tally, lines.place)
    for collector.index, line in enumerate(lines.lines):
        try:
            received_at, message = _message(line)
        except (ValueError, RecursionError):
            if line.strip():
                collector.reject(UNPARSABLE, line[:200].decode("utf-8", "replace"))
            continue
        _read_message({"tst": received_at, **message}, collector)
    return collector.points


def _message(line: bytes) -> tuple[str | None, dict[str, Any]]:
    """Return the time and the message of a line. Raises ValueError or RecursionError."""
    match = _LINE.match(line)
    if match is None:
        raise ValueError("not a message")
    time = match[1].decode("ascii", "replace") if match[1] else None
    return time, _decode(match[2].decode("utf-8", "replace"))


def _read_message(message: Any, collector: Collector) -> None:
    if not isinstance(message, dict):
        return collector.reject(UNPARSABLE, message)
    if message.get("_type") == "location":
        lat, lon = message.get("lat"), message.get("lon")
        collector.add(first(message, "tst", "isotst"), lat, lon, **measures_of(message))


def measures_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return the measures of a location message, whose speed `vel` is in kilometres per hour."""
    measures = measures_in(message, _MEASURES)
    return {**measures, "speed": divided(measures["speed"], _KILOMETRES)}


class OwnTracksJson(JsonFormat):
    """The answers of the recorder's API, `{"count": …, "data": [messages]}`, and the JSON of its
    program ocat, which calls the list `locations`. Or only the list."""

    name = "owntracks_json"
    label = "OwnTracks recorder, JSON"
    marks = re.compile(rb'"_type"\s*:\s*"location"')
    lists = dict.fromkeys(("", "data", "locations"), _read_message)
    at_once = dict.fromkeys(("", "data", "locations"), _read_messages)

    def recognises(self, head: bytes) -> bool:
        return bool(_LIST.match(head) and self.marks.search(head))
