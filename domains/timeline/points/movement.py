"""Divide the points of one device into stays and moves, and measure the distance of the moves."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from tailrace.domains.timeline.points.stretches import Located

STAY_METRES = 150
"""Maximum distance of the points of a stay from its first point. A stay that begins soon after
another one, at most twice as far away, continues it."""
STAY_TIME = timedelta(minutes=10)
"""Minimum duration of a stay."""
METRES_PER_UNIT = 111_320 / 1e7
"""The length of 1e-7 degrees of latitude."""


@dataclass(frozen=True, slots=True)
class Movement:
    """A stay or a move: consecutive points, each of which is in one stay or move. A move begins
    with the last point before it and ends with the first point after it."""

    is_stay: bool
    points: Sequence[Located]
    metres: float
    """The length of the track of a move; 0 for a stay."""

    @property
    def first(self) -> Located:
        return self.points[0]

    @property
    def last(self) -> Located:
        return self.points[-1]

    @property
    def middle(self) -> Located:
        """The point in the middle of the list: for a stay, its place."""
        return self.points[len(self.points) // 2]

    @property
    def seconds(self) -> float:
        return (self.last[0] - self.first[0]).total_seconds()


def movements_of(points: Sequence[Located]) -> list[Movement]:
    """Return the stays and moves of these points, which are of one device and sorted by time."""
    movements: list[Movement] = []
    done = 0
    for start, end in _merged(points):
        movements += _move(points, done, start + 1)
        movements.append(Movement(True, points[start:end], 0.0))
        done = end - 1
    return movements + _move(points, done, len(points))


def metres_between(one: Located, other: Located) -> float:
    """Return the distance, for points that are at most a few hundred kilometres apart exactly to
    a percent."""
    lat = (one[1] + other[1]) / 2
    lon = (other[2] - one[2] + 1_800_000_000) % 3_600_000_000 - 1_800_000_000
    east = lon * math.cos(math.radians(lat / 1e7))
    return math.hypot(other[1] - one[1], east) * METRES_PER_UNIT


def _stays(points: Sequence[Located]) -> Iterator[tuple[int, int]]:
    """Yield the first index of each stay, and the index after its last one."""
    start = 0
    for end in range(1, len(points) + 1):
        if end < len(points) and metres_between(points[start], points[end]) <= STAY_METRES:
            continue
        if points[end - 1][0] - points[start][0] >= STAY_TIME:
            yield start, end
        start = end


def _merged(points: Sequence[Located]) -> list[tuple[int, int]]:
    """Return the stays; stays that continue another one are merged with it."""
    merged: list[tuple[int, int]] = []
    for start, end in _stays(points):
        if merged:
            before, last = merged[-1][0], merged[-1][1] - 1
            is_near = metres_between(points[before], points[start]) <= 2 * STAY_METRES
            if is_near and points[start][0] - points[last][0] < STAY_TIME:
                merged[-1] = before, end
                continue
        merged.append((start, end))
    return merged


def _move(points: Sequence[Located], start: int, end: int) -> list[Movement]:
    """Return the move of these points, or nothing if they are fewer than two."""
    part = points[start:end]
    if len(part) < 2:
        return []
    metres = sum(metres_between(one, other) for one, other in pairwise(part))
    return [Movement(False, part, metres)]
