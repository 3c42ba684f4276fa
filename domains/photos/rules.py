"""rules: which photos belong together, decided in memory on what was loaded under locks.

Join: the nearest ACTIVE gathering within the distance whose last photo is within the window.
Found: enough unassigned photos within the distance and the window of the newest of them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings

from domains.photos import sphere
from domains.photos.sphere import Space, Vector


@dataclass(slots=True, eq=False)
class Spot:
    """An unassigned photo."""

    id: int
    at: Vector
    taken_at: datetime
    uploaded_at: datetime
    given_up_at: datetime | None
    """None while it is new."""
    crowd: "Crowd | None" = None
    """The gathering it has just come to."""


@dataclass(slots=True, eq=False)
class Crowd:
    """An ACTIVE gathering, with those that have just come to it."""

    id: int | None
    """None: founded now."""
    at: Vector
    count: int
    total: Vector
    first: datetime
    last: datetime
    came: list[Spot] = field(default_factory=list)

    def take(self, spot: Spot) -> None:
        """Count the photo in. Whoever keeps crowds by place moves this one to `centre`."""
        spot.crowd = self
        self.came.append(spot)
        self.count += 1
        x, y, z = self.total
        self.total = (x + spot.at[0], y + spot.at[1], z + spot.at[2])
        self.first, self.last = min(self.first, spot.taken_at), max(self.last, spot.taken_at)

    @property
    def centre(self) -> Vector:
        return sphere.direction(self.total)


class Scene:
    """What lies around a batch of photos: unassigned photos and ACTIVE gatherings."""

    def __init__(self, spots: Iterable[Spot], crowds: Iterable[Crowd]) -> None:
        self.distance = sphere.limit(settings.PHOTOS_DISTANCE_METERS)
        self.twice = sphere.limit(2 * settings.PHOTOS_DISTANCE_METERS)
        self.window = timedelta(minutes=settings.PHOTOS_TIME_WINDOW_MINUTES)
        self.least: int = settings.PHOTOS_MIN_FOR_GATHERING
        self.spots = Space(2 * settings.PHOTOS_DISTANCE_METERS, spots)
        self.crowds = Space(settings.PHOTOS_DISTANCE_METERS, crowds)

    def place(self, spot: Spot) -> None:
        """Let the photo join a gathering or found one, if it can."""
        if spot.crowd is None and not self._join(spot):
            self._found(spot)

    def alone_with(self, spot: Spot) -> list[Spot]:
        """Return the unassigned photos within the distance and the window of it, itself too."""
        return [
            other
            for other in self.spots.near(spot.at, self.distance)
            if other.crowd is None and abs(other.taken_at - spot.taken_at) <= self.window
        ]

    def _join(self, spot: Spot) -> bool:
        open_ones = [
            (sphere.apart(crowd.at, spot.at), crowd.id or 0, crowd)
            for crowd in self.crowds.near(spot.at, self.distance)
            if abs(crowd.last - spot.taken_at) <= self.window
        ]
        if not open_ones:
            return False
        nearest = min(open_ones, key=lambda one: one[:2])[2]
        nearest.take(spot)
        self.crowds.move(nearest, nearest.centre)
        return True

    def _found(self, spot: Spot) -> None:
        around = [
            other
            for other in self.spots.near(spot.at, self.twice)
            if other.crowd is None and abs(other.taken_at - spot.taken_at) <= self.window
        ]
        if len(around) < self.least:
            return
        for newest in sorted(around, key=lambda one: (one.taken_at, one.id), reverse=True):
            if newest.taken_at < spot.taken_at:
                return
            if sphere.apart(newest.at, spot.at) > self.distance:
                continue
            together = [
                other
                for other in around
                if newest.taken_at - self.window <= other.taken_at <= newest.taken_at
                and sphere.apart(newest.at, other.at) <= self.distance
            ]
            if len(together) >= self.least:
                return self._begin(together)

    def _begin(self, together: list[Spot]) -> None:
        times = [one.taken_at for one in together]
        crowd = Crowd(None, (0, 0, 0), 0, (0, 0, 0), min(times), max(times))
        for one in together:
            crowd.take(one)
        crowd.at = crowd.centre
        self.crowds.add(crowd)
