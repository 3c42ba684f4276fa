from django.db import models
from django.db.models.functions import Now


class SearchValue(models.Model):
    """A value of a payload that can be searched for, of an event or of a job."""

    field = models.TextField()
    value = models.TextField()
    # Numbers alone: events and jobs are pruned before.
    event_id = models.BigIntegerField(null=True)
    job_id = models.BigIntegerField(null=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["field", "value", "id"], name="tailrace_search_value")]

    def __str__(self) -> str:
        return f"{self.field}={self.value}"
