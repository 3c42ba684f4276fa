"""Cells of the grid: PostgreSQL and Python agree, and a disc's cover is complete."""

import math
import random

import pytest
from django.db import connection

from tailrace.domains.photos.geometry import grid

EDGES = [
    (0.0, 0.0), (0.0, 180.0), (0.0, -180.0), (90.0, 0.0), (-90.0, 12.0), (90.0, 180.0),
    (-89.999999, -179.999999), (60.0, 24.0), (59.999999, 24.0), (-60.0, 24.0), (0.01, 0.01),
    (52.52, 13.405), (-0.0, -0.0),
]  # fmt: skip


def cell(lat: float, lon: float) -> int:
    row = min(grid.ROWS - 1, math.floor((lat + 90) * 100))
    n = grid.columns(row)
    return row * grid.COLUMNS + min(n - 1, math.floor((lon + 180) / 360 * n))


def anywhere(chance: random.Random) -> tuple[float, float]:
    lat = chance.choice([chance.uniform(-90, 90), 90 - 10 ** chance.uniform(-7, 1)])
    return chance.choice([lat, -lat]), chance.choice([chance.uniform(-180, 180), 180.0])


@pytest.mark.django_db
def test_postgresql_and_python_compute_the_same_cell() -> None:
    chance = random.Random(5)
    points = EDGES + [anywhere(chance) for _ in range(5000)]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {grid.CELL_SQL} FROM unnest(%s::float8[], %s::float8[]) WITH ORDINALITY"
            " AS p (lat, lon, n) ORDER BY n",
            [[lat for lat, _ in points], [lon for _, lon in points]],
        )
        cells = [row[0] for row in cursor.fetchall()]
    assert cells == [cell(*point) for point in points]


def away(lat: float, lon: float, metres: float, bearing: float) -> tuple[float, float]:
    """Return the point that far from there, by the formula of the sphere."""
    a, b, d = math.radians(lat), math.radians(lon), metres / grid.EARTH_RADIUS
    to = math.asin(
        max(-1, min(1, math.sin(a) * math.cos(d) + math.cos(a) * math.sin(d) * math.cos(bearing)))
    )
    east = b + math.atan2(
        math.sin(bearing) * math.sin(d) * math.cos(a), math.cos(d) - math.sin(a) * math.sin(to)
    )
    return math.degrees(to), (math.degrees(east) + 180) % 360 - 180


@pytest.mark.parametrize("metres", [1, 150, 10_000])
def test_a_cover_contains_the_cells_of_all_points(metres: float) -> None:
    chance = random.Random(metres)
    for lat, lon in EDGES + [anywhere(chance) for _ in range(300)]:
        cover = set(grid.cover(lat, lon, metres))
        assert cell(lat, lon) in cover
        for _ in range(40):
            there = away(lat, lon, metres * chance.random() ** 0.2, chance.uniform(0, 2 * math.pi))
            assert cell(*there) in cover, (lat, lon, there)


def test_a_cover_is_small_everywhere() -> None:
    chance = random.Random(7)
    for point in [anywhere(chance) for _ in range(2000)]:
        assert len(grid.cover(*point, 150)) <= 24
