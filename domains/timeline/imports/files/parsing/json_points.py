"""Build points from values of JSON files. The values may be missing or of any type."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tailrace.domains.timeline.imports.files.parsing.columns import UNUSUAL
from tailrace.domains.timeline.imports.files.parsing.json_stream import Items
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.parsing.values import (
    Measures,
    any_time,
    checked_measures,
    e7,
    lat_lon,
    why_unreadable,
)
from tailrace.domains.timeline.points.points import NO_COORDINATES, Point, fault


@dataclass
class Collector:
    """Collects the points of consecutive items of a file."""

    tally: Tally
    places: Callable[[int], dict[str, int]]
    """Returns the position of the item with this index, as arguments of `Tally.reject`."""
    index: int = 0
    """Index of the item that is being read."""
    points: list[Point] = field(default_factory=list)

    def add(
        self,
        time: object,
        lat: object,
        lon: object,
        convert: Callable[[object], int] = e7,
        read_time: Callable[[object], int] = any_time,
        item: object = None,
        **measures: object,
    ) -> None:
        """Add a point, or count it as rejected. `convert` converts `lat` and `lon` to 1e-7 degrees,
        `read_time` the time to microseconds since 1970; both raise ValueError. If the point is
        rejected, the text of `item` is kept, by default its time and coordinates. The names of
        `measures` are in LIMITS."""
        try:
            at = (read_time(time), convert(lon), convert(lat))
        except ValueError:
            self.reject(why_unreadable(time, lat, lon), (time, lat, lon) if item is None else item)
        else:
            self.add_at(at, checked_measures(measures), item)

    def add_text(self, time: object, text: object, **measures: object) -> None:
        """Add a point whose coordinates are "52.52°, 13.405°" or "geo:52.52,13.405"."""
        try:
            lat, lon = lat_lon(text)
            at = (any_time(time), lon, lat)
        except ValueError:
            reason = NO_COORDINATES if text is None or text == "" else why_unreadable(time)
            self.reject(reason, (time, text))
        else:
            self.add_at(at, checked_measures(measures))

    def reject(self, reason: str, value: object) -> None:
        place = self.places(self.index) if self.tally.keeps_more else {}
        self.tally.reject(reason, value, **place)

    def add_at(self, at: tuple[int, int, int], measures: Measures, item: object = None) -> None:
        """Add a point with this time, longitude and latitude unless they are out of range."""
        if reason := fault(*at, self.tally.latest):
            return self.reject(reason, at if item is None else item)
        self.points.append((*at, *measures))


def measures_in(value: object, names: Mapping[str, str]) -> dict[str, Any]:
    get = value.get if isinstance(value, dict) else {}.get
    return {name: get(key) for name, key in names.items()}


ReadItem = Callable[[Any, Collector], None]
"""Adds the points of one item of a list."""
AtOnce = Callable[[list[Any], int], list[Point]]
"""Converts items to points. Takes items and `Tally.latest`; raises one of UNUSUAL if an item is not
simple."""


def points_of(
    items: Items, tally: Tally, read_item: ReadItem, at_once: AtOnce | None = None
) -> list[Point]:
    """Return the points that `read_item` adds for these items. `at_once` returns the same points
    faster if all items are simple."""
    if at_once is not None:
        try:
            return at_once(items.values, tally.latest)
        except UNUSUAL:
            pass
    collector = Collector(tally, items.place)
    for collector.index, item in enumerate(items.values):
        read_item(item, collector)
    return collector.points


def part(value: object, *keys: str) -> Any:
    """Return the value under this path of keys in nested objects, or None if it does not exist."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def parts(value: object, *keys: str) -> list[Any]:
    """Return the list under this path of keys, or [] if there is no list."""
    listed = part(value, *keys)
    return listed if isinstance(listed, list) else []


def first(value: object, *keys: str) -> Any:
    """Return the value of the first key whose value is not None, or None."""
    if isinstance(value, dict):
        for key in keys:
            if (member := value.get(key)) is not None:
                return member
    return None
