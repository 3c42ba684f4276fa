"""The .rec files of the OwnTracks recorder: one file per month, one line per message."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tailrace.domains.timeline.imports.files.formats.base import Format
from tailrace.domains.timeline.imports.files.parsing import columns
from tailrace.domains.timeline.imports.files.parsing.file_errors import (
    FileError,
    LimitExceeded,
    Malformed,
)
from tailrace.domains.timeline.imports.files.parsing.json_points import Collector, measures_in
from tailrace.domains.timeline.imports.files.parsing.readable import Readable
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.parsing.values import divided
from tailrace.domains.timeline.imports.files.parsing.whole_items import decode
from tailrace.domains.timeline.points.points import UNPARSABLE, Point

CHUNK = 65_536
MAX_LINE = 100_000
_LINE = re.compile(rb"(\d{4}-\d\d-\d\d\S*)[ \t]+(\S+)[ \t]+(\{.*)")
_LOCATIONS = re.compile(rb"^\d{4}-\d\d-\d\d\S*[ \t]+\S+[ \t]+(\{.*)$", re.MULTILINE)
_MEASURES = {"altitude": "alt", "accuracy": "acc", "speed": "vel", "course": "cog"}
_KILOMETRES = 3.6
"""Kilometres per hour in one metre per second."""
_decode = json.JSONDecoder().decode


class OwnTracks(Format):
    """Lines of `ISO time, *, {json}`, separated by tabs or spaces. Only messages of the type
    location are read; others (last will, waypoints, transitions) are ignored."""

    name = "owntracks_rec"
    label = "OwnTracks recorder"

    def recognises(self, head: bytes) -> bool:
        return _LINE.match(head) is not None

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        lines = _Lines(file)
        while not lines.ended:
            error = lines.read()
            try:
                points = _points_at_once(lines.lines, tally.latest)
            except columns.UNUSUAL:
                points = _points(lines, tally)
            yield points
            if error is not None:
                raise error


class _Lines:
    def __init__(self, file: Readable) -> None:
        self.lines: list[bytes] = []
        self.number = 1
        """Number of the first of `lines` in the file."""
        self.offset = 0
        """Byte where the first of `lines` begins."""
        self.ended = False
        self._file = file
        self._rest = b""

    def read(self) -> FileError | None:
        """Read the next lines. Return the error in the file after these lines, or None."""
        self.number += len(self.lines)
        self.offset += sum(map(len, self.lines)) + len(self.lines)
        self.lines = []
        try:
            piece = self._file.read(CHUNK)
        except FileError as error:
            self.ended = True
            return error
        *self.lines, self._rest = (self._rest + piece).split(b"\n")
        if not piece:
            self.ended = True
            if self._rest.strip():
                return self._last()
        if len(self._rest) > MAX_LINE:
            return self._error(LimitExceeded, f"A line is longer than {MAX_LINE:,} bytes")
        return None

    def place(self, index: int) -> dict[str, Any]:
        """Return `line` and `offset` of a line, as arguments of `Tally.reject`."""
        before = sum(map(len, self.lines[:index])) + index
        return {"line": self.number + index, "offset": self.offset + before}

    def _last(self) -> FileError | None:
        """Add the last line of the file, which may lack its line end, if it is complete. Return an
        error if it is not."""
        try:
            _message(self._rest)
        except (ValueError, RecursionError):
            return self._error(Malformed, "The file ends in the middle of a line")
        self.lines.append(self._rest)
        return None

    def _error(self, kind: type[FileError], message: str) -> FileError:
        return kind(message, **self.place(len(self.lines)))


def _points_at_once(lines: list[bytes], latest: int) -> list[Point]:
    """Return the points of the lines at once. Raises one of UNUSUAL if a line is not simple."""
    objects = _LOCATIONS.findall(b"\n".join(lines))
    if len(objects) != len(lines):
        raise ValueError("not all lines are messages")
    messages = [item for item in map(decode, objects) if item.get("_type") == "location"]
    lats = [message["lat"] for message in messages]
    lons = [message["lon"] for message in messages]
    if {*map(type, lats), *map(type, lons)} - {float, int}:
        raise ValueError("not all coordinates are numbers")
    measures = columns.measures_of(messages, _MEASURES)
    if {*map(type, measures["speed"])} - {type(None)}:
        measures["speed"] = [divided(value, _KILOMETRES) for value in measures["speed"]]
    times = columns.any_times([message["tst"] for message in messages])
    return columns.points(times, columns.degrees(lons), columns.degrees(lats), latest, measures)


def _points(lines: _Lines, tally: Tally) -> list[Point]:
    collector = Collector(tally, lines.place)
    for collector.index, line in enumerate(lines.lines):
        try:
            received_at, message = _message(line)
        except (ValueError, RecursionError):
            if line.strip():
                collector.reject(UNPARSABLE, line[:200].decode("utf-8", "replace"))
            continue
        if message.get("_type") == "location":
            time = message.get("tst", received_at)
            measures = measures_of(message)
            collector.add(time, message.get("lat"), message.get("lon"), **measures)
    return collector.points


def _message(line: bytes) -> tuple[str, dict[str, Any]]:
    """Return the time and the message of a line. Raises ValueError or RecursionError."""
    match = _LINE.match(line)
    if match is None:
        raise ValueError("not a message")
    return match[1].decode("ascii", "replace"), _decode(match[3].decode("utf-8", "replace"))


def measures_of(message: dict[str, Any]) -> dict[str, Any]:
    """Return the measures of a location message, whose speed `vel` is in kilometres per hour."""
    measures = measures_in(message, _MEASURES)
    return {**measures, "speed": divided(measures["speed"], _KILOMETRES)}
