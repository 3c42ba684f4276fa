"""Put a batch of photos into gatherings, in one transaction.

    lock the cells around ──► load photos and gatherings ──► decide (rules) ──► save

A batch holds advisory locks on all cells within 2 × PHOTOS_DISTANCE_METERS of its photos: all that
it reads or changes, such as the centroid of a gathering before and after a photo joins. So two
workers whose photos can affect each other wait for each other.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from tailrace.db.query import prepared
from tailrace.db.sql.arrays import number_array
from tailrace.domains.photos.clustering.load import Window, load_clusters, load_photos
from tailrace.domains.photos.clustering.rules import Neighbourhood
from tailrace.domains.photos.clustering.save import save
from tailrace.domains.photos.geometry import grid

HANDLER = "photos.cluster"
"""The handler that calls `cluster_photos`. The routing and unique key of a job is a photo's id."""


def cluster_photos(ids: Iterable[int], causes: Mapping[int, int] = {}) -> set[int]:
    """Put photos into gatherings by the clustering rules; return the ids of the existing photos.

    `causes` maps a photo's id to the id of its `photos.uploaded`: the latest is the cause of the
    event of a new gathering. Photos that have a gathering do not change. A photo without one at the
    end of its lookback becomes unclusterable.
    """
    with transaction.atomic():
        points = _points(ids)
        unassigned = {id: point for id, point in points.items() if point is not None}
        if unassigned:
            windows = _windows(unassigned.values())
            lock_cells(cell for cell, _since, _until in windows)
            photos = load_photos(windows)
            neighbourhood = Neighbourhood(photos.values(), load_clusters(windows))
            batch = sorted(
                (photos[id] for id in unassigned if id in photos),
                key=lambda photo: (photo.taken_at, photo.id),
            )
            for photo in batch:
                neighbourhood.assign(photo)
            save(neighbourhood, batch, list(photos.values()), causes)
    return set(points)


_POINTS = """
SELECT id, gathering_id, lat, lon, taken_at FROM tailrace_photos_photo
WHERE id = ANY(%(ids)s::bigint[])
"""
Point = tuple[float, float, datetime]


def _points(ids: Iterable[int]) -> dict[int, Point | None]:
    """Return location and time of the existing photos by id; None for a photo that has a gathering
    already, or no location yet."""
    return {
        id: (lat, lon, taken_at) if gathering is None and lat is not None else None
        for id, gathering, lat, lon, taken_at in prepared(_POINTS, ids=number_array(ids))
    }


def _windows(points: Iterable[Point]) -> list[Window]:
    """Return the cells around the points with their time windows, merged if they overlap."""
    margin = timedelta(minutes=settings.PHOTOS_TIME_WINDOW_MINUTES)
    radius = 2 * settings.PHOTOS_DISTANCE_METERS
    cells = sorted(
        (cell, taken_at) for lat, lon, taken_at in points for cell in grid.cover(lat, lon, radius)
    )
    windows: list[Window] = []
    for cell, taken_at in cells:
        since, until = taken_at - margin, taken_at + margin
        if windows and windows[-1][0] == cell and since <= windows[-1][2]:
            windows[-1] = (cell, windows[-1][1], until)
        else:
            windows.append((cell, since, until))
    return windows


# One row per block, so that the locks are acquired in the order of the array.
_LOCK = """
SELECT pg_advisory_xact_lock(hashtext('tailrace.photos.cells'), block)
FROM unnest(%(blocks)s::int[]) AS block
"""


def lock_cells(cells: Iterable[int]) -> None:
    """Lock the cells in ascending order until the transaction ends. If PHOTOS_DISTANCE_METERS is
    long, one lock covers a block of cells: the server has room for a few thousand locks only."""
    side = max(1, math.ceil(4 * settings.PHOTOS_DISTANCE_METERS / grid.METRES_PER_ROW))
    blocks = {
        row // side * grid.COLUMNS + column // side
        for row, column in (divmod(cell, grid.COLUMNS) for cell in cells)
    }
    prepared(_LOCK, blocks=number_array(sorted(blocks)))
