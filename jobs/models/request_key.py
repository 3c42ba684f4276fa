from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class RequestKey(models.Model):
    """The Idempotency-Key of a user's request, and the job that the request created."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False
    )
    key = models.TextField()
    digest = models.TextField(help_text="SHA-256 of the request that came with the key first")
    job_id = models.BigIntegerField(null=True, help_text="no foreign key: jobs are pruned")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="tailrace_request_key_once")
        ]
        indexes = [models.Index(fields=["created_at"], name="tailrace_request_key_age")]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.key}"
