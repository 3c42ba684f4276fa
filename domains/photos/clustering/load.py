"""Load the unassigned photos and the ACTIVE gatherings of the given cells and times."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tailrace.db.query import prepared
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.domains.photos.clustering.rules import Cluster, PhotoPoint
from tailrace.domains.photos.geometry import sphere

Window = tuple[int, datetime, datetime]
"""A cell, and the start and end of a time range."""

# A photo without a location has a cell at a pole: its state must be checked, too.
# OFFSET 0 stops the planner from turning the index loop into a join that reads the whole table.
_PHOTOS = """
SELECT near.* FROM unnest(%(cells)s::int[], %(since)s::timestamptz[], %(until)s::timestamptz[])
  AS w (cell, since, until),
LATERAL (
  SELECT id, x, y, z, taken_at, coalesce(placed_at, uploaded_at) AS arrived_at, given_up_at
  FROM tailrace_photos_photo p
  WHERE p.gathering_id IS NULL AND p.cell = w.cell AND p.taken_at BETWEEN w.since AND w.until
    AND p.state <> 'unplaced'
  OFFSET 0
) near
"""

# The row locks stop the sweeper from finalizing a gathering that a photo is about to join. After
# waiting for a lock, PostgreSQL checks the state again.
_CLUSTERS = """
SELECT g.id, g.photo_count, g.sum_x, g.sum_y, g.sum_z, g.first_photo_at, g.last_photo_at,
       g.lat, g.lon, g.placed_count, g.place_grid
FROM tailrace_photos_gathering g
WHERE g.state = 'ACTIVE' AND g.id = ANY (ARRAY(
  SELECT near.id
  FROM unnest(%(cells)s::int[], %(since)s::timestamptz[], %(until)s::timestamptz[])
    AS w (cell, since, until),
  LATERAL (
    SELECT id FROM tailrace_photos_gathering a
    WHERE a.state = 'ACTIVE' AND a.cell = w.cell AND a.last_photo_at BETWEEN w.since AND w.until
    OFFSET 0
  ) near
))
ORDER BY g.id
FOR UPDATE
"""


def load_photos(windows: Sequence[Window]) -> dict[int, PhotoPoint]:
    """Return the unassigned photos by id."""
    rows = prepared(_PHOTOS, **_columns(windows))
    return {id: PhotoPoint(id, (x, y, z), *times) for id, x, y, z, *times in rows}


def load_clusters(windows: Sequence[Window]) -> list[Cluster]:
    """Return the ACTIVE gatherings with their rows locked."""
    clusters = []
    rows = prepared(_CLUSTERS, **_columns(windows))
    for id, count, x, y, z, first, last, lat, lon, *placed in rows:
        total = (int(x), int(y), int(z))
        at = sphere.direction(total) if any(total) else sphere.unit_vector(lat, lon)
        clusters.append(Cluster(id, count, total, first, last, at, *placed))
    return clusters


def _columns(windows: Sequence[Window]) -> dict[str, Any]:
    return {
        "cells": number_array(cell for cell, _, _ in windows),
        "since": text_array(since for _, since, _ in windows),
        "until": text_array(until for _, _, until in windows),
    }
