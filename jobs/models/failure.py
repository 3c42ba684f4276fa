from django.conf import settings
from django.db import models
from django.db.models.functions import Now


class FailureGroup(models.Model):
    """Failures of one handler with the same error class, frame and message."""

    id = models.BigIntegerField(
        primary_key=True, help_text="made from what its failures have in common"
    )
    handler = models.TextField()
    error_class = models.TextField(blank=True)
    frame = models.TextField(blank=True, help_text="where in our code the error was raised")
    message = models.TextField(
        blank=True, help_text="without numbers, ids, quotes and addresses, which differ"
    )
    failures = models.BigIntegerField(
        default=0, help_text="attempts that failed so, with those that were tried again"
    )
    first_seen_at = models.DateTimeField(db_default=Now())
    last_seen_at = models.DateTimeField(db_default=Now())
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
        help_text="who looks after it",
    )
    silenced_until = models.DateTimeField(
        null=True, blank=True, help_text="until then it raises no alert and is counted apart; UTC"
    )
    note = models.TextField(default="", blank=True, max_length=4000)

    class Meta:
        verbose_name = "failure"
        indexes = [
            models.Index(fields=["last_seen_at"], name="tailrace_failure_last_seen"),
            models.Index(fields=["first_seen_at"], name="tailrace_failure_first_seen"),
            models.Index(fields=["failures"], name="tailrace_failure_count"),
            models.Index(fields=["handler", "last_seen_at"], name="tailrace_failure_of_handler"),
        ]

    def __str__(self) -> str:
        return f"{self.handler}: {self.error_class or 'failed'}"


class FailureHour(models.Model):
    """The number of failures of a group in one hour, for its sparkline."""

    group = models.ForeignKey(
        FailureGroup, models.DO_NOTHING, db_constraint=False, db_index=False, related_name="hours"
    )
    hour = models.DateTimeField()
    failures = models.PositiveIntegerField(default=0)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["group", "hour"], name="tailrace_failures_per_hour"),
        ]

    def __str__(self) -> str:
        return f"{self.group_id} {self.hour:%Y-%m-%d %H}"
