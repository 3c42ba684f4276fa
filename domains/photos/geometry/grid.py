"""Divide the earth into cells, so that an index finds neighbours by equality.

A cell is 0.01° high (1.1 km) and about as wide. Towards the poles the number of columns is halved
repeatedly, so that no cell is narrower than half its height. PostgreSQL computes a photo's cell
(CELL_SQL); `cover` returns the cells that a disc touches, also across the 180th meridian and over
the poles. Both use integers and plain IEEE operations, so they always agree.
"""

import math
from bisect import bisect_right

EARTH_RADIUS = 6_371_008.8
"""Mean radius in metres."""
ROWS = 18_000
COLUMNS = 36_000
METRES_PER_ROW = math.pi * EARTH_RADIUS / ROWS
_FROM_POLE = (2, 5, 11, 23, 46, 93, 187, 375, 750, 1500, 3000)
_COLUMNS = (8, 35, 70, 140, 281, 562, 1125, 2250, 4500, 9000, 18_000, 36_000)
"""Columns of a row by its distance from the pole (_FROM_POLE, in rows); the last number is for all
other rows."""
_MARGIN = 1e-7
"""Degrees (1 cm) added to the radius of a disc, so that rounding loses no neighbour."""

_ROW_SQL = f"least({ROWS - 1}, floor((lat + 90) * 100)::int)"
_COLUMNS_SQL = (
    f"('{{{','.join(map(str, _COLUMNS))}}}'::int[])[1 + width_bucket("
    f"least({_ROW_SQL}, {ROWS - 1} - {_ROW_SQL}), '{{{','.join(map(str, _FROM_POLE))}}}'::int[])]"
)
CELL_SQL = (
    f"({_ROW_SQL} * {COLUMNS}"
    f" + least({_COLUMNS_SQL} - 1, floor((lon + 180) / 360 * {_COLUMNS_SQL})::int))"
)
"""SQL for the cell of a row with the columns `lat` and `lon`."""


def columns(row: int) -> int:
    """Return the number of cells in a row."""
    return _COLUMNS[bisect_right(_FROM_POLE, min(row, ROWS - 1 - row))]


def cover(lat: float, lon: float, metres: float) -> list[int]:
    """Return the cells that the disc with this radius around the point touches."""
    reach = math.degrees(metres / EARTH_RADIUS) + _MARGIN
    low, high = lat - reach, lat + reach
    first = max(0, math.floor((low + 90) * 100))
    last = min(ROWS - 1, math.floor((high + 90) * 100))
    half = 180.0  # all longitudes, where the disc contains a pole
    if low > -90 and high < 90:
        ratio = math.sin(math.radians(reach)) / math.cos(math.radians(lat))
        half = math.degrees(math.asin(ratio)) + _MARGIN if ratio < 1 else 180.0
    return [
        row * COLUMNS + column
        for row in range(first, last + 1)
        for column in _columns_between(columns(row), lon - half, lon + half)
    ]


def _columns_between(n: int, west: float, east: float) -> list[int]:
    first, last = math.floor((west + 180) / 360 * n), math.floor((east + 180) / 360 * n)
    if last - first + 1 >= n:
        return list(range(n))
    return sorted({column % n for column in range(first, last + 1)})
