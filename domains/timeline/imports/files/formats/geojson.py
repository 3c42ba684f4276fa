"""GeoJSON with a time for each point. No standard defines it: all common conventions are tried."""

import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from tailrace.domains.timeline.imports.files.formats.base import (
    BATCH,
    Format,
    JsonFormat,
)
from tailrace.domains.timeline.imports.files.parsing import columns
from tailrace.domains.timeline.imports.files.parsing.file_errors import FileError
from tailrace.domains.timeline.imports.files.parsing.held_lists import HeldLists
from tailrace.domains.timeline.imports.files.parsing.json_points import (
    Collector,
    first,
    part,
    parts,
    points_of,
)
from tailrace.domains.timeline.imports.files.parsing.json_stream import Fields, JsonStream, Long
from tailrace.domains.timeline.imports.files.parsing.lines import Lines, first_object
from tailrace.domains.timeline.imports.files.parsing.readable import Readable
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.points.points import NO_COORDINATES, UNPARSABLE, Point

_TIMES = (
    "timestamp", "time", "datetime", "date", "when", "time_long", "recorded_at", "isotst", "tst",
)  # fmt: skip
_MEASURES = {
    **dict.fromkeys(("altitude", "ele", "elevation", "alt"), "altitude"),
    **dict.fromkeys(("accuracy", "horizontal_accuracy", "acc"), "accuracy"),
    **dict.fromkeys(("speed", "velocity"), "speed"),
    **dict.fromkeys(("course", "bearing", "heading"), "course"),
}
_TIMES_OF_LINES = (
    "properties.coordTimes",
    "properties.coordinateProperties.times",
    "properties.times",
    "properties.time",
    "properties.timestamp",
)
_FIELDS = Fields(
    lists=("geometry.coordinates", *_TIMES_OF_LINES),
    members=("geometry.type", *(f"properties.{name}" for name in (*_TIMES, *_MEASURES))),
)
"""The fields of a feature that is the whole file, or that is too long to be decoded at once."""
_FEATURES = ("features", "locations")


class GeoJson(JsonFormat):
    """Points, and lines whose times are in `coordTimes` or in a fourth coordinate. Also batches of
    Overland, which have a list of features called `locations`."""

    name = "geojson"
    label = "GeoJSON"
    rank = 10
    marks = re.compile(rb'"type"\s*:\s*"(?:FeatureCollection|Feature)"|"geometry"\s*:\s*\{')

    def recognises(self, head: bytes) -> bool:
        return super().recognises(head) and not _is_lines(head)

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        root: dict[str, Any] = dict.fromkeys((*_FIELDS.members, "type"))
        held_lists = HeldLists()
        keys = [*_FEATURES, *_FIELDS.lists]
        error: FileError | None = None
        try:
            for items in JsonStream(file).lists(keys, root, dict.fromkeys(_FEATURES, _FIELDS)):
                if items.long is not None:
                    yield from _long_feature(items.long, f"{items.key}.", held_lists, tally)
                elif items.key in _FEATURES:
                    yield points_of(items, tally, _read_feature, _read_features)
                else:
                    held_lists.add(items)
        except FileError as raised:
            error = raised
        if root["type"] == "Feature":
            yield from _long_feature(Long(root, {"record": 1}), "", held_lists, tally)
        if error is not None:
            raise error


class GeoJsonLines(Format):
    """One feature of GeoJSON per line."""

    name = "geojson_lines"
    label = "GeoJSON, one feature per line"

    def recognises(self, head: bytes) -> bool:
        return _is_lines(head)

    def read(self, file: Readable, tally: Tally) -> Iterator[list[Point]]:
        lines = Lines(file, json.loads)
        while not lines.ended:
            error = lines.read()
            collector = Collector(tally, lines.place)
            for collector.index, line in enumerate(lines.lines):
                if line.strip():
                    _read_feature_of_line(line, collector)
            yield collector.points
            if error is not None:
                raise error


def _is_lines(head: bytes) -> bool:
    followed = head.partition(b"\n")[2].lstrip().startswith(b"{")
    return followed and first_object(head).get("type") == "Feature"


def _read_feature_of_line(line: bytes, collector: Collector) -> None:
    try:
        feature = json.loads(line)
    except (ValueError, RecursionError):
        collector.reject(UNPARSABLE, line[:200].decode("utf-8", "replace"))
    else:
        _read_feature(feature, collector)


def _long_feature(
    feature: Long, path: str, held_lists: HeldLists, tally: Tally
) -> Iterator[list[Point]]:
    """Yield the points of a feature. Its lists are in `held_lists`, with names that begin with
    `path`."""
    coordinates = held_lists.first_of(f"{path}geometry.coordinates")
    times = held_lists.first_of(*(f"{path}{name}" for name in _TIMES_OF_LINES))
    members = {name.removeprefix(path): value for name, value in feature.members.items()}
    kind = members["geometry.type"]
    if kind == "Point":
        properties = {
            name.removeprefix("properties."): value
            for name, value in members.items()
            if name.startswith("properties.")
        }
        whole = {"type": kind, "coordinates": list(islice(coordinates, 4)) or None}
        collector = Collector(tally, lambda _: feature.place)
        _read_feature({"geometry": whole, "properties": properties}, collector)
        yield collector.points
    elif kind in ("LineString", "MultiPoint", "MultiLineString"):
        while positions := list(islice(coordinates, BATCH)):
            collector = Collector(tally, lambda _: feature.place)
            _read_coordinates(kind, positions, list(islice(times, BATCH)), collector)
            yield collector.points
    held_lists.clear()


def _read_feature(feature: Any, collector: Collector) -> None:
    geometry, properties = part(feature, "geometry"), part(feature, "properties")
    kind, coordinates = part(geometry, "type"), part(geometry, "coordinates")
    if not isinstance(coordinates, list):
        return collector.reject(NO_COORDINATES, feature)
    if kind == "Point":
        _read_point(coordinates, properties, collector)
    else:
        _read_coordinates(kind, coordinates, _line_times(properties), collector)


def _read_coordinates(
    kind: object, coordinates: list[Any], times: list[Any], collector: Collector
) -> None:
    if kind in ("LineString", "MultiPoint"):
        _read_line(coordinates, times, collector)
    elif kind == "MultiLineString":
        for index, line in enumerate(coordinates):
            times_of_line = times[index] if index < len(times) else []
            if isinstance(line, list):
                _read_line(line, times_of_line, collector)
    # Areas are ignored: they are not positions of a person.


def _read_features(features: list[Any], latest: int) -> list[Point]:
    """Return the points of the features at once. Raises one of UNUSUAL if a feature is not a simple
    point: then use `_read_feature` for each feature."""
    geometries = [feature["geometry"] for feature in features]
    properties = [feature["properties"] for feature in features]
    if {geometry["type"] for geometry in geometries} != {"Point"}:
        raise ValueError("not all features are points")
    lons, lats, *others = zip(*[geometry["coordinates"] for geometry in geometries], strict=True)
    if len(others) > 1 or {*map(type, lons), *map(type, lats)} - {float, int}:
        raise ValueError("not all coordinates are two or three numbers")
    time, names = _property_names({*chain.from_iterable(properties)})
    values = columns.measures_of(properties, names)
    if others:
        if "altitude" in values and None in others[0]:
            raise ValueError("altitudes in coordinates and properties")
        values["altitude"] = [*others[0]]
    times = columns.any_times([members[time] for members in properties])
    return columns.points(times, columns.degrees(lons), columns.degrees(lats), latest, values)


def _property_names(names: set[str]) -> tuple[str, dict[str, str]]:
    """Return the property with the time, and the properties with measures by kind of measure."""
    [time] = names.intersection(_TIMES)
    measures = names.intersection(_MEASURES)
    by_kind = {_MEASURES[name]: name for name in measures}
    if len(by_kind) < len(measures):
        raise ValueError("a measure has two names")
    return time, by_kind


def _read_point(coordinates: list[Any], properties: Any, collector: Collector) -> None:
    lon, lat, altitude, time = _position_parts(coordinates)
    measures: dict[str, Any] = {}
    for key, value in properties.items() if isinstance(properties, dict) else ():
        if key in _MEASURES and value is not None:
            measures.setdefault(_MEASURES[key], value)
    if altitude is not None:
        measures["altitude"] = altitude
    time_of_feature = first(properties, *_TIMES)
    collector.add(time if time_of_feature is None else time_of_feature, lat, lon, **measures)


def _read_line(line: list[Any], times: Any, collector: Collector) -> None:
    if not isinstance(times, list):
        times = []
    for index, position in enumerate(line):
        lon, lat, altitude, time_here = _position_parts(position)
        time = times[index] if index < len(times) else time_here
        collector.add(time, lat, lon, altitude=altitude)


def _position_parts(position: Any) -> tuple[Any, Any, Any, Any]:
    """Return longitude, latitude, altitude and time of a position; missing parts are None."""
    if not isinstance(position, list):
        return None, None, None, None
    lon, lat, altitude, time, *_ = (*position[:4], None, None, None, None)
    return lon, lat, altitude, time


def _line_times(properties: Any) -> list[Any]:
    lists = (parts(properties, *name.split(".")[1:]) for name in _TIMES_OF_LINES)
    return next(filter(None, lists), [])
