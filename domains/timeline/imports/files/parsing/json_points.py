"""Build points from values of JSON files. The values may be missing or of any type."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tailrace.domains.timeline.imports.files.parsing.columns import UNUSUAL
from tailrace.domains.timeline.imports.files.parsing.json_stream import Items, JsonStream
from tailrace.domains.timeline.imports.files.parsing.readable import Readable
from tailrace.domains.timeline.imports.files.parsing.tally import Tally
from tailrace.domains.timeline.imports.files.parsing.values import (
    accuracy,
    altitude,
    any_time,
    course,
    e7,
    lat_lon,
    speed,
    why_unreadable,
)
from tailrace.domains.timeline.points.points import (
    NO_COORDINATES,
    NO_TIME,
    UNPARSABLE,
    Point,
    fault,
)

_MEASURES: dict[str, Callable[[object], float | None]] = {
    "altitude": altitude,
    "accuracy": accuracy,
    "speed": speed,
    "course": course,
}


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
        **measures: object,
    ) -> None:
        """Add a point, or count it as rejected. `convert` converts `lat` and `lon` to 1e-7 degrees;
        `measures` are altitude, accuracy, speed and course."""
        try:
            at = (any_time(time), convert(lon), convert(lat))
        except ValueError:
            self.reject(why_unreadable(time, lat, lon), (time, lat, lon))
        else:
            self._add(at, measures)

    def add_text(self, time: object, text: object, **measures: object) -> None:
        """Add a point whose coordinates are "52.52°, 13.405°" or "geo:52.52,13.405"."""
        try:
            lat, lon = lat_lon(text)
            at = (any_time(time), lon, lat)
        except ValueError:
            self.reject(_rejection_reason(time, text), (time, text))
        else:
            self._add(at, measures)

    def reject(self, reason: str, value: object) -> None:
        """Count the point as rejected."""
        self.tally.reject(reason, value, **self.places(self.index))

    def _add(self, at: tuple[int, int, int], measures: dict[str, object]) -> None:
        reason = fault(*at, self.tally.latest)
        if reason is not None:
            return self.reject(reason, at)
        if not measures:
            self.points.append((*at, None, None, None, None))
            return
        values = {
            name: _MEASURES[name](value) for name, value in measures.items() if value is not None
        }
        get = values.get
        self.points.append((*at, get("altitude"), get("accuracy"), get("speed"), get("course")))


AtOnce = Callable[[list[Any], int], list[Point]]
"""Converts items to points. Takes items and `Tally.latest`; raises one of UNUSUAL if an item is not
simple."""


def collect(
    file: Readable,
    tally: Tally,
    lists: Mapping[str, Callable[[Any, Collector], None]],
    at_once: Mapping[str, AtOnce] | None = None,
) -> Iterator[list[Point]]:
    """Yield the points of the lists in the file. `lists` maps the keys of the lists to functions
    that add the points of one item; `at_once` maps some of the keys to faster functions for
    `points_of`."""
    for items in JsonStream(file).lists(lists):
        yield points_of(items, tally, lists[items.key], (at_once or {}).get(items.key))


def points_of(
    items: Items,
    tally: Tally,
    read_item: Callable[[Any, Collector], None],
    at_once: AtOnce | None = None,
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


def _rejection_reason(time: object, text: object) -> str:
    """Return the reason to reject a point with coordinates in a text."""
    if text is None or text == "":
        return NO_COORDINATES
    return NO_TIME if time is None or time == "" else UNPARSABLE
