"""Columns and constraints of a point on the earth, in degrees."""

from typing import Any

from django.db import models
from django.db.models import F, Func

from tailrace.domains.photos.geometry.grid import CELL_SQL


def cell_column() -> models.GeneratedField:
    """Return the column with the point's cell (`geometry.grid`)."""
    return _computed(CELL_SQL, models.IntegerField())


def vector_column(axis: str) -> models.GeneratedField:
    """Return the column with one component of the point's unit vector, scaled by `sphere.UNIT`."""
    product = {
        "x": "cos(radians(lat)) * cos(radians(lon))",
        "y": "cos(radians(lat)) * sin(radians(lon))",
        "z": "sin(radians(lat))",
    }[axis]
    return _computed(f"round(({product}) * 1e15::float8)::bigint", models.BigIntegerField())


def _computed(sql: str, field: "models.Field[Any, Any]") -> models.GeneratedField:
    # The arguments tell Django which columns the SQL depends on; the SQL itself names them, too.
    expression = Func(F("lat"), F("lon"), template=sql, output_field=field)
    return models.GeneratedField(expression=expression, output_field=field, db_persist=True)


def valid_coordinates(prefix: str) -> models.CheckConstraint:
    """Return the constraint that a point is on the earth; it also rejects NaN and infinity."""
    return models.CheckConstraint(
        condition=models.Q(lat__range=(-90, 90), lon__range=(-180, 180)),
        name=f"tailrace_{prefix}_on_earth",
    )
