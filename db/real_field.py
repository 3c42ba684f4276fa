from typing import Any

from django.db import models


class RealField(models.FloatField):
    """A number of four bytes, as precise as positions are."""

    def db_type(self, connection: Any) -> str:
        return "real"

    def get_internal_type(self) -> str:
        return "FloatField"
