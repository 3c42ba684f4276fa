from django.db import models
from django.db.models import Func


class ClockTimestamp(Func):
    function = "clock_timestamp"
    output_field = models.DateTimeField()


class Effect(models.Model):
    """What one job did; all sides have this table."""

    job = models.TextField()
    at = models.DateTimeField(db_default=ClockTimestamp())

    class Meta:
        db_table = "bench_effect"

    def __str__(self) -> str:
        return self.job
