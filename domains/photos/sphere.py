"""sphere: distances and centroids on the earth, in whole numbers.

A point is a unit vector of three integers (times UNIT), as PostgreSQL computes it of latitude and
longitude. So neither the 180th meridian nor a pole is special, and sums are exact.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from domains.photos.grid import EARTH_RADIUS
from domains.photos.models.place import UNIT

Vector = tuple[int, int, int]


class Located(Protocol):
    at: Vector


def limit(metres: float) -> int:
    """Return the square of the chord that belongs to a great circle's arc of that length."""
    return round((2 * math.sin(min(metres / EARTH_RADIUS, math.pi) / 2) * UNIT) ** 2)


def apart(a: Vector, b: Vector) -> int:
    """Return the square of the chord between two points: compare it with `limit`."""
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2


def unit(lat: float, lon: float) -> Vector:
    """Return the vector of a point in degrees."""
    a, b = math.radians(lat), math.radians(lon)
    return (
        round(math.cos(a) * math.cos(b) * UNIT),
        round(math.cos(a) * math.sin(b) * UNIT),
        round(math.sin(a) * UNIT),
    )


def direction(total: Vector) -> Vector:
    """Return the unit vector where a sum of vectors points."""
    length = math.isqrt(total[0] ** 2 + total[1] ** 2 + total[2] ** 2) or 1
    x, y, z = (part * UNIT // length for part in total)
    return x, y, z


def degrees(total: Vector) -> tuple[float, float]:
    """Return latitude and longitude of where a sum of vectors points."""
    x, y, z = map(float, total)
    return math.degrees(math.atan2(z, math.hypot(x, y))), math.degrees(math.atan2(y, x))


T = TypeVar("T", bound=Located)


class Space(Generic[T]):
    """Things by place, so that the near ones are found without looking at the others."""

    def __init__(self, metres: float, things: Iterable[T] = ()) -> None:
        """Take the longest distance that will be asked for."""
        self._side = math.isqrt(limit(metres)) + 1
        self._boxes: dict[Vector, list[T]] = {}
        for thing in things:
            self.add(thing)

    def add(self, thing: T) -> None:
        self._boxes.setdefault(self._box(thing.at), []).append(thing)

    def move(self, thing: T, to: Vector) -> None:
        """Give the thing another place."""
        self._boxes[self._box(thing.at)].remove(thing)
        thing.at = to
        self.add(thing)

    def near(self, at: Vector, within: int) -> Iterator[T]:
        """Yield the things no farther from there than `within`, a `limit`."""
        x, y, z = self._box(at)
        for i in (x - 1, x, x + 1):
            for j in (y - 1, y, y + 1):
                for k in (z - 1, z, z + 1):
                    for thing in self._boxes.get((i, j, k), ()):
                        if apart(thing.at, at) <= within:
                            yield thing

    def _box(self, at: Vector) -> Vector:
        return at[0] // self._side, at[1] // self._side, at[2] // self._side
