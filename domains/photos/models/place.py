"""The columns that PostgreSQL computes of a point in degrees."""

from typing import Any

from django.db import models
from django.db.models import F, Func

from domains.photos.grid import CELL_SQL

UNIT = 10**15
"""How long a unit vector's integers are: 6 nm on the ground, and a sum is exact in any order."""


def cell() -> models.GeneratedField:
    """Return the column of the grid's cell."""
    return _computed(CELL_SQL, models.IntegerField())


def component(of: str) -> models.GeneratedField:
    """Return the column of one component of the point's unit vector, times UNIT."""
    product = {
        "x": "cos(radians(lat)) * cos(radians(lon))",
        "y": "cos(radians(lat)) * sin(radians(lon))",
        "z": "sin(radians(lat))",
    }[of]
    return _computed(f"round(({product}) * 1e15::float8)::bigint", models.BigIntegerField())


def _computed(sql: str, field: "models.Field[Any, Any]") -> models.GeneratedField:
    # Named as arguments, so that Django knows what the column depends on; the SQL names them too.
    expression = Func(F("lat"), F("lon"), template=sql, output_field=field)
    return models.GeneratedField(expression=expression, output_field=field, db_persist=True)


def on_earth(prefix: str) -> list[models.BaseConstraint]:
    """Return the constraint that a point is one; NaN and infinity are none."""
    return [
        models.CheckConstraint(
            condition=models.Q(lat__range=(-90, 90), lon__range=(-180, 180)),
            name=f"{prefix}_on_earth",
        )
    ]
