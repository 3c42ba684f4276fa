from typing import Any

from django.db import models


class RealField(models.FloatField):
    """A floating-point number of four bytes, which is precise enough for positions."""

    def db_type(self, connection: Any) -> str:
        return "real"

    def get_internal_type(self) -> str:
        return "FloatField"
