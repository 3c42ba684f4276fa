"""Count points by the cells of a grid, for a heat map."""

from django.core.exceptions import EmptyResultSet

from tailrace.db import connections
from tailrace.domains.timeline.models.point import PointQuerySet

CELL = 20_000
"""The size of a cell in 1e-7 degrees: about 200 metres."""
MOST_READ, MOST_CELLS = 300_000, 2000
"""Maximum number of points that are counted, and of cells that are returned."""
_COUNT = f"""
SELECT floor(lat / {CELL}.0)::int, floor(lon / {CELL}.0)::int, count(*)
FROM ({{points}}) AS points GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT {MOST_CELLS}
"""


def cells_of(points: PointQuerySet) -> list[tuple[float, float, int]]:
    """Return the cells with the most points: latitude and longitude of the centre in degrees, and
    the number of points. At most MOST_READ points are counted."""
    try:
        sql, params = points.order_by().values("lat", "lon")[:MOST_READ].query.sql_with_params()
    except EmptyResultSet:  # the user has no device
        return []
    with connections.current().cursor() as cursor:
        cursor.execute(_COUNT.format(points=sql), params)
        rows = cursor.fetchall()
    return [(_centre(lat), _centre(lon), count) for lat, lon, count in rows]


def _centre(cell: int) -> float:
    return round((cell + 0.5) * CELL / 1e7, 5)
