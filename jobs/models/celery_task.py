from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class CeleryTask(models.Model):
    """The id of a Celery task or group, which its caller has chosen, and the job that it refers to.
    An id that is used again refers to the newest job."""

    task_id = models.TextField(primary_key=True)
    # No foreign key: it would lock the job.
    job_id = models.BigIntegerField(null=True, help_text="empty for a group")
    state = models.TextField(
        default="", db_default="", blank=True, help_text="stored while it runs, or at its end"
    )
    meta = models.JSONField(
        null=True, blank=True, help_text="stored with the state: `result` and `traceback`"
    )
    children = models.JSONField(null=True, blank=True, help_text="the tasks that it has called")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(fields=["job_id"], name="tailrace_celerytask_job"),
            models.Index(
                fields=["created_at"],
                name="tailrace_celerytask_groups",
                condition=Q(job_id__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"task {self.task_id}: job {self.job_id}"
