"""Find the items near a point without comparing all of them."""

import math
from collections.abc import Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from tailrace.domains.photos.geometry.sphere import Vector, squared_chord, squared_distance


class Located(Protocol):
    at: Vector


T = TypeVar("T", bound=Located)


class SpatialIndex(Generic[T]):
    """Items, grouped into boxes by position."""

    def __init__(self, metres: float, items: Iterable[T] = ()) -> None:
        """`metres` is the longest distance that `near` is called with."""
        self._side = math.isqrt(squared_chord(metres)) + 1
        self._boxes: dict[Vector, list[T]] = {}
        for item in items:
            self.add(item)

    def add(self, item: T) -> None:
        self._boxes.setdefault(self._box(item.at), []).append(item)

    def move(self, item: T, to: Vector) -> None:
        """Change the item's position."""
        self._boxes[self._box(item.at)].remove(item)
        item.at = to
        self.add(item)

    def near(self, at: Vector, within: int) -> Iterator[T]:
        """Yield the items within a distance of `at`; `within` is its `squared_chord`."""
        x, y, z = self._box(at)
        for i in (x - 1, x, x + 1):
            for j in (y - 1, y, y + 1):
                for k in (z - 1, z, z + 1):
                    for item in self._boxes.get((i, j, k), ()):
                        if squared_distance(item.at, at) <= within:
                            yield item

    def _box(self, at: Vector) -> Vector:
        return at[0] // self._side, at[1] // self._side, at[2] // self._side
