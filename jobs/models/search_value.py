from django.db import models
from django.db.models.functions import Now


class SearchValue(models.Model):
    """A searchable value of the payload of an event or a job."""

    field = models.TextField()
    value = models.TextField()
    # No foreign keys: events and jobs are pruned first.
    event_id = models.BigIntegerField(null=True)
    job_id = models.BigIntegerField(null=True)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["field", "value", "id"], name="tailrace_search_value")]

    def __str__(self) -> str:
        return f"{self.field}={self.value}"
