"""Round points to the centres of cells, to show locations that do not reveal exact points.

Rows of cells follow the parallels. The edge of a row that is nearer to the pole limits its number
of cells, so that no cell is narrower or lower than the requested size. The cell at a pole is a disc
with the pole as its centre. The module `grid`, which finds neighbours, has different cells.
"""

import math

from tailrace.domains.photos.geometry.grid import EARTH_RADIUS

DIGITS = 5
"""Decimal digits of a centre's degrees: about a metre."""


def cell_centre(lat: float, lon: float, metres: int) -> tuple[float, float]:
    """Return the centre, in degrees, of the point's cell of at least `metres` by `metres`."""
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
