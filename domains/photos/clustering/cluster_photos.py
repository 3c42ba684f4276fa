"""Put a batch of photos into gatherings, in one transaction.

    lock the cells around ──► load photos and gatherings ──► decide (rules) ──► save

Each change of which photo belongs to which gathering happens under advisory locks on the cells
within twice the distance of the photo that caused it. Everything that is read or changed lies in
those cells: the photos of a new gathering, and a gathering's centroid before and after a photo
joined. Two workers whose photos can affect each other therefore wait for each other.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from tailrace.db import prepared
from tailrace.db.arrays import number_array
from tailrace.domains.photos.clustering.load import Window, load_clusters, load_photos
from tailrace.domains.photos.clustering.rules import Neighbourhood
from tailrace.domains.photos.clustering.save import save
from tailrace.domains.photos.geometry import grid

HANDLER = "photos.cluster"
"""Its jobs call `cluster_photos`; their routing key and unique key is the id of a photo."""


def cluster_photos(ids: Iterable[int], causes: Mapping[int, int] = {}) -> set[int]:
    """Put the photos into gatherings, as far as they belong to any; return the ids that exist.

    `causes`: by the id of a photo the id of the event that brought it. The newest one of those in a
    gathering that starts is the cause of its event.
    Safe to repeat: a photo that has a gathering is left alone. A photo that is still alone after
    the lookback becomes unclusterable.
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
    """Return place and time of the photos that exist; None for those that have a gathering, or no
    place yet."""
    return {
        id: (lat, lon, taken_at) if gathering is None and lat is not None else None
        for id, gathering, lat, lon, taken_at in prepared.query(_POINTS, ids=number_array(ids))
    }


def _windows(points: Iterable[Point]) -> list[Window]:
    """Return the cells around the points, each with the times that matter, merged per cell."""
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


# Row by row, so that the locks are taken in the order of the array.
_LOCK = """
SELECT pg_advisory_xact_lock(hashtext('tailrace.photos.cells'), block)
FROM unnest(%(blocks)s::int[]) AS block
"""


def lock_cells(cells: Iterable[int]) -> None:
    """Lock the cells until the transaction ends, in order. With a long distance one lock covers a
    block of cells, as the server has room for some thousands of locks only."""
    side = max(1, math.ceil(4 * settings.PHOTOS_DISTANCE_METERS / grid.METRES_PER_ROW))
    blocks = {
        row // side * grid.COLUMNS + column // side
        for row, column in (divmod(cell, grid.COLUMNS) for cell in cells)
    }
    prepared.query(_LOCK, blocks=number_array(sorted(blocks)))
