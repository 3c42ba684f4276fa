"""Distances and centroids on the earth, in whole numbers.

A point is a unit vector, scaled by UNIT to three integers, which PostgreSQL computes from latitude
and longitude. So neither the 180th meridian nor a pole is a special case, and sums are exact.
"""

import math

from tailrace.domains.photos.geometry.grid import EARTH_RADIUS

UNIT = 10**15
"""Length of a scaled unit vector. A step is 6 nm on the ground."""

Vector = tuple[int, int, int]


def squared_chord(metres: float) -> int:
    """Return the squared chord of a great-circle arc with this length."""
    return round((2 * math.sin(min(metres / EARTH_RADIUS, math.pi) / 2) * UNIT) ** 2)


def squared_distance(a: Vector, b: Vector) -> int:
    """Return the squared chord between two points, to be compared with `squared_chord`."""
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2


def unit_vector(lat: float, lon: float) -> Vector:
    """Return the vector of a point in degrees."""
    a, b = math.radians(lat), math.radians(lon)
    x, y, z = math.cos(a) * math.cos(b), math.cos(a) * math.sin(b), math.sin(a)
    return round(x * UNIT), round(y * UNIT), round(z * UNIT)


def direction(total: Vector) -> Vector:
    """Return the unit vector in the direction of a sum of vectors."""
    length = math.isqrt(total[0] ** 2 + total[1] ** 2 + total[2] ** 2) or 1
    x, y, z = (part * UNIT // length for part in total)
    return x, y, z


def degrees(total: Vector) -> tuple[float, float]:
    """Return latitude and longitude of the direction of a sum of vectors."""
    x, y, z = map(float, total)
    return math.degrees(math.atan2(z, math.hypot(x, y))), math.degrees(math.atan2(y, x))
