"""The place of a gathering that people see: computed from cells, and moved seldom.

Each photo counts as the centre of its cell (geometry/place_grid), so nothing that is shown depends
on where in its cell a photo was taken, whoever else adds photos and however many. The place stays
until MIN_CHANGE photos and half of the gathering have joined or left, so that no single photo moves
it; PHOTOS_PLACE_GRID_M is the size of a cell.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.conf import settings

from tailrace.db import prepared
from tailrace.db.arrays import number_array
from tailrace.domains.photos.clustering.rules import Cluster
from tailrace.domains.photos.geometry import sphere
from tailrace.domains.photos.geometry.grid import EARTH_RADIUS
from tailrace.domains.photos.geometry.place_grid import cell_centre

MIN_CHANGE = 3
"""Photos that join or leave before the shown place moves, at least."""


class ShownPlace(NamedTuple):
    """A cell's centre in degrees, and metres around it, a multiple of the size of a cell."""

    lat: float
    lon: float
    radius: int


def shown_place(points: Sequence[tuple[float, float]], metres: int) -> ShownPlace:
    """Return the place to show of photos at these points, of which there is at least one."""
    vectors = [sphere.unit_vector(*cell_centre(lat, lon, metres)) for lat, lon in points]
    x, y, z = (sum(axis) for axis in zip(*vectors, strict=True))
    lat, lon = cell_centre(*sphere.degrees((x, y, z)), metres)
    centre = sphere.unit_vector(lat, lon)
    farthest = math.sqrt(max(sphere.squared_distance(centre, vector) for vector in vectors))
    distance = 2 * EARTH_RADIUS * math.asin(min(1, farthest / (2 * sphere.UNIT)))
    return ShownPlace(lat, lon, (math.floor(distance / metres) + 1) * metres)


def new_places(clusters: Iterable[Cluster]) -> dict[int, ShownPlace]:
    """Return the places of those stored gatherings whose place is to be computed, by id."""
    due = [cluster.id for cluster in clusters if cluster.id is not None and _is_due(cluster)]
    points: dict[int, list[tuple[float, float]]] = {}
    if due:
        for id, lat, lon in prepared.query(_POINTS, ids=number_array(due)):
            points.setdefault(id, []).append((lat, lon))
    return {id: shown_place(some, settings.PHOTOS_PLACE_GRID_M) for id, some in points.items()}


_POINTS = """
SELECT p.gathering_id, p.lat, p.lon FROM tailrace_photos_photo p
WHERE p.gathering_id = ANY(%(ids)s::bigint[])
"""


def _is_due(cluster: Cluster) -> bool:
    if cluster.place_grid != settings.PHOTOS_PLACE_GRID_M:
        return True
    change = abs(cluster.count - cluster.placed_count)
    return change >= max(MIN_CHANGE, cluster.placed_count // 2)
