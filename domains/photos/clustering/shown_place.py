"""The shown location of a gathering: what users see instead of the exact points of its photos.

It is computed from the centres of the photos' cells of PHOTOS_PLACE_GRID_M.
So it never depends on the position of a photo within its cell, even if another user uploads many
photos around it. It changes only when at least MIN_CHANGE photos, and half as many as it was
computed from, have joined or left, so that no single photo moves it.
"""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from django.conf import settings

from tailrace.db.query import prepared
from tailrace.db.sql.arrays import number_array
from tailrace.domains.photos.clustering.rules import Cluster
from tailrace.domains.photos.geometry import sphere
from tailrace.domains.photos.geometry.grid import EARTH_RADIUS

DIGITS = 5
"""Decimal digits of a centre's degrees: about a metre."""
MIN_CHANGE = 3
"""Minimum number of photos that join or leave before the shown location changes."""


class ShownPlace(NamedTuple):
    """The centre of a cell in degrees, and a radius in metres, a multiple of the cell size."""

    lat: float
    lon: float
    radius: int


def shown_place(points: Sequence[tuple[float, float]], metres: int) -> ShownPlace:
    """Return the location to show for photos at these points, with cells of `metres`."""
    vectors = [sphere.unit_vector(*cell_centre(lat, lon, metres)) for lat, lon in points]
    x, y, z = (sum(axis) for axis in zip(*vectors, strict=True))
    lat, lon = cell_centre(*sphere.degrees((x, y, z)), metres)
    centre = sphere.unit_vector(lat, lon)
    farthest = math.sqrt(max(sphere.squared_distance(centre, vector) for vector in vectors))
    distance = 2 * EARTH_RADIUS * math.asin(min(1, farthest / (2 * sphere.UNIT)))
    return ShownPlace(lat, lon, (math.floor(distance / metres) + 1) * metres)


def cell_centre(lat: float, lon: float, metres: int) -> tuple[float, float]:
    """Return the centre, in degrees, of the point's cell of at least `metres` by `metres`.

    Rows of cells follow the parallels. The edge of a row that is nearer to the pole limits its
    number of cells, so that no cell is narrower or lower. The cell at a pole is a disc.
    """
    rows = max(1, math.floor(math.pi * EARTH_RADIUS / metres))
    height = 180 / rows
    row = min(rows - 1, math.floor((lat + 90) / height))
    south, north = row * height - 90, (row + 1) * height - 90
    if row in (0, rows - 1):
        return (-90.0 if row == 0 else 90.0), 0.0
    parallel = math.cos(math.radians(max(-south, north))) * 2 * math.pi * EARTH_RADIUS
    columns = max(1, math.floor(parallel / metres))
    column = min(columns - 1, math.floor((lon + 180) / 360 * columns))
    lat, lon = (south + north) / 2, (column + 0.5) * 360 / columns - 180
    return round(lat, DIGITS), round(lon, DIGITS)


def new_places(clusters: Iterable[Cluster]) -> dict[int, ShownPlace]:
    """Compute the shown locations that have to change; return them by gathering id."""
    due = [cluster.id for cluster in clusters if cluster.id is not None and _is_due(cluster)]
    points: dict[int, list[tuple[float, float]]] = {}
    if due:
        for id, lat, lon in prepared(_POINTS, ids=number_array(due)):
            points.setdefault(id, []).append((lat, lon))
    return {id: shown_place(group, settings.PHOTOS_PLACE_GRID_M) for id, group in points.items()}


_POINTS = """
SELECT p.gathering_id, p.lat, p.lon FROM tailrace_photos_photo p
WHERE p.gathering_id = ANY(%(ids)s::bigint[])
"""


def _is_due(cluster: Cluster) -> bool:
    if cluster.place_grid != settings.PHOTOS_PLACE_GRID_M:
        return True
    change = abs(cluster.count - cluster.placed_count)
    return change >= max(MIN_CHANGE, cluster.placed_count // 2)
