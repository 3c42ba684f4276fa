"""Write the figures of gatherings: count, sums, centroid, radius, times and shown location."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings

from tailrace.db import clock
from tailrace.db.query import prepared
from tailrace.db.sql.arrays import number_array, text_array
from tailrace.domains.photos.clustering.rules import Cluster
from tailrace.domains.photos.clustering.shown_place import new_places
from tailrace.domains.photos.geometry import sphere
from tailrace.domains.photos.geometry.grid import EARTH_RADIUS

_COLUMN_OF = {
    "gathering": "id",
    **{name: f"shown_{name}" for name in ("lat", "lon", "radius")},
    **{name: name for name in ("photo_count", "first_photo_at", "last_photo_at")},
}
PAYLOAD_COLUMNS = ", ".join(f"g.{column}" for column in _COLUMN_OF.values())
"""The columns of `tailrace_photos_gathering g` that `payload` takes."""

_WRITE = f"""
UPDATE tailrace_photos_gathering g SET
  photo_count = new.count, sum_x = new.x, sum_y = new.y, sum_z = new.z,
  lat = coalesce(new.lat, g.lat), lon = coalesce(new.lon, g.lon),
  shown_lat = coalesce(new.shown_lat, g.shown_lat),
  shown_lon = coalesce(new.shown_lon, g.shown_lon),
  shown_radius = coalesce(new.shown_radius, g.shown_radius),
  placed_count = CASE WHEN new.shown_lat IS NULL THEN g.placed_count ELSE new.count END,
  place_grid = CASE WHEN new.shown_lat IS NULL THEN g.place_grid ELSE %(grid)s::int END,
  first_photo_at = new.first, last_photo_at = new.last,
  joined_at = CASE WHEN %(joined)s::bool THEN {clock.NOW} ELSE g.joined_at END,
  radius = 2 * {EARTH_RADIUS} * asin(least(1, sqrt(coalesce(farthest.squared, 0)) / 2e15))
FROM unnest(%(ids)s::bigint[], %(count)s::int[], %(x)s::numeric[], %(y)s::numeric[],
            %(z)s::numeric[], %(lat)s::float8[], %(lon)s::float8[], %(first)s::timestamptz[],
            %(last)s::timestamptz[], %(cx)s::bigint[], %(cy)s::bigint[], %(cz)s::bigint[],
            %(shown_lat)s::float8[], %(shown_lon)s::float8[], %(shown_radius)s::float8[])
  AS new (id, count, x, y, z, lat, lon, first, last, cx, cy, cz, shown_lat, shown_lon,
          shown_radius),
LATERAL (
  SELECT max((p.x - new.cx)::float8 ^ 2 + (p.y - new.cy)::float8 ^ 2
             + (p.z - new.cz)::float8 ^ 2) AS squared
  FROM tailrace_photos_photo p WHERE p.gathering_id = new.id
) farthest
WHERE g.id = new.id AND (g.state = 'ACTIVE' OR NOT %(joined)s::bool)
RETURNING {PAYLOAD_COLUMNS}
"""


def write_figures(clusters: Sequence[Cluster], *, joined: bool) -> list[dict[str, Any]]:
    """Write the figures of gatherings; return the payloads for their events. If photos have just
    `joined`, only ACTIVE gatherings are updated, and their `joined_at` is set."""
    places = new_places(clusters)
    shown = [places.get(cluster.id or 0, (None, None, None)) for cluster in clusters]
    totals = [cluster.total for cluster in clusters]
    points = [sphere.degrees(total) if any(total) else (None, None) for total in totals]
    centres = [sphere.direction(total) for total in totals]
    params: dict[str, Any] = {
        "joined": joined,
        "grid": settings.PHOTOS_PLACE_GRID_M,
        "shown_lat": number_array(lat for lat, _, _ in shown),
        "shown_lon": number_array(lon for _, lon, _ in shown),
        "shown_radius": number_array(radius for _, _, radius in shown),
        "ids": number_array(cluster.id for cluster in clusters),
        "count": number_array(cluster.count for cluster in clusters),
        "lat": number_array(lat for lat, _ in points),
        "lon": number_array(lon for _, lon in points),
        "first": text_array(cluster.first for cluster in clusters),
        "last": text_array(cluster.last for cluster in clusters),
    }
    for axis, name in enumerate("xyz"):
        params[name] = number_array(total[axis] for total in totals)
        params[f"c{name}"] = number_array(centre[axis] for centre in centres)
    return [payload(row) for row in prepared(_WRITE, **params)]


def payload(row: Sequence[Any]) -> dict[str, Any]:
    """Return the payload of a gathering's event from a row of PAYLOAD_COLUMNS."""
    return dict(zip(_COLUMN_OF, row, strict=True))
