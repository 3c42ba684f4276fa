"""The clustering rules. They work in memory on rows that were loaded under locks.

Join: a photo joins the nearest ACTIVE gathering within the distance whose last photo is within the
time window. Start: enough unassigned photos within the distance and the time window of the newest
of them start a gathering.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from tailrace.domains.photos.geometry import sphere
from tailrace.domains.photos.geometry.spatial_index import SpatialIndex
from tailrace.domains.photos.geometry.sphere import Vector, squared_chord, squared_distance


@dataclass(slots=True, eq=False)
class PhotoPoint:
    """An unassigned photo."""

    id: int
    at: Vector
    taken_at: datetime
    arrived_at: datetime
    """When the photo was uploaded, or got its location from the timeline."""
    given_up_at: datetime | None
    """None while the photo is new."""
    cluster: "Cluster | None" = None
    """The gathering that this batch assigned."""


@dataclass(slots=True, eq=False)
class Cluster:
    """A gathering with its figures, which include the photos that this batch assigns to it."""

    id: int | None
    """None for a new gathering, until its row is inserted."""
    count: int
    total: Vector
    first: datetime
    last: datetime
    at: Vector = (0, 0, 0)
    """The position under which the spatial index lists the cluster."""
    placed_count: int = 0
    """How many photos the gathering had when its shown location was computed."""
    place_grid: int | None = None
    """PHOTOS_PLACE_GRID_M at that time; None if it has no shown location yet."""

    def add(self, photo: PhotoPoint) -> None:
        """Add the photo to the figures. The caller must move the cluster in its spatial index."""
        photo.cluster = self
        self.count += 1
        x, y, z = self.total
        self.total = (x + photo.at[0], y + photo.at[1], z + photo.at[2])
        self.first, self.last = min(self.first, photo.taken_at), max(self.last, photo.taken_at)

    @property
    def centre(self) -> Vector:
        return sphere.direction(self.total)


class Neighbourhood:
    """The unassigned photos and ACTIVE gatherings around a batch of photos."""

    def __init__(self, photos: Iterable[PhotoPoint], clusters: Iterable[Cluster]) -> None:
        self.distance = squared_chord(settings.PHOTOS_DISTANCE_METERS)
        self.double_distance = squared_chord(2 * settings.PHOTOS_DISTANCE_METERS)
        self.window = timedelta(minutes=settings.PHOTOS_TIME_WINDOW_MINUTES)
        self.min_photos: int = settings.PHOTOS_MIN_FOR_GATHERING
        self.photos = SpatialIndex(2 * settings.PHOTOS_DISTANCE_METERS, photos)
        self.clusters = SpatialIndex(settings.PHOTOS_DISTANCE_METERS, clusters)

    def assign(self, photo: PhotoPoint) -> None:
        """Let the photo join or start a gathering if the rules allow it."""
        if photo.cluster is None and not self._join(photo):
            self._start(photo)

    def unassigned_near(self, photo: PhotoPoint, distance: int = 0) -> list[PhotoPoint]:
        """Return the unassigned photos within the distance (a squared chord) and time window."""
        return [
            other
            for other in self.photos.near(photo.at, distance or self.distance)
            if other.cluster is None and abs(other.taken_at - photo.taken_at) <= self.window
        ]

    def _join(self, photo: PhotoPoint) -> bool:
        candidates = [
            cluster
            for cluster in self.clusters.near(photo.at, self.distance)
            if abs(cluster.last - photo.taken_at) <= self.window
        ]
        if not candidates:
            return False
        nearest = min(candidates, key=lambda c: (squared_distance(c.at, photo.at), c.id or 0))
        nearest.add(photo)
        self.clusters.move(nearest, nearest.centre)
        return True

    def _start(self, photo: PhotoPoint) -> None:
        around = self.unassigned_near(photo, self.double_distance)
        if len(around) < self.min_photos:
            return
        for newest in sorted(around, key=lambda other: (other.taken_at, other.id), reverse=True):
            if newest.taken_at < photo.taken_at:
                return
            if squared_distance(newest.at, photo.at) > self.distance:
                continue
            members = [
                other
                for other in around
                if newest.taken_at - self.window <= other.taken_at <= newest.taken_at
                and squared_distance(newest.at, other.at) <= self.distance
            ]
            if len(members) >= self.min_photos:
                return self._create(members)

    def _create(self, members: list[PhotoPoint]) -> None:
        times = [photo.taken_at for photo in members]
        cluster = Cluster(None, 0, (0, 0, 0), min(times), max(times))
        for photo in members:
            cluster.add(photo)
        cluster.at = cluster.centre
        self.clusters.add(cluster)
