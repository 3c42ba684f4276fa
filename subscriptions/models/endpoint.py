from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now


class Endpoint(models.Model):
    """Where a user has events sent to, signed as Standard Webhooks says."""

    class State(models.TextChoices):
        ENABLED = "enabled"
        PAUSED = "paused", "paused: its deliveries are held"
        DISABLED = "disabled", "disabled: it gets nothing"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="endpoints")
    url = models.TextField()
    description = models.TextField(default="", blank=True)
    secret = models.TextField(editable=False, help_text="encrypted")
    old_secret = models.TextField(default="", editable=False, help_text="encrypted")
    old_secret_until = models.DateTimeField(null=True, editable=False)
    state = models.TextField(choices=State.choices, default=State.ENABLED)
    reason = models.TextField(default="", blank=True, help_text="why it is not enabled")
    failing_since = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        indexes = [
            models.Index(
                fields=["user"], name="endpoint_not_disabled", condition=~Q(state="disabled")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.url}"


class Delivery(models.Model):
    """One try to deliver to an endpoint, and what came of it."""

    class Outcome(models.TextChoices):
        OK = "ok"
        RETRY = "retry"
        FAILED = "failed"
        GONE = "gone", "gone: the endpoint was disabled"

    endpoint = models.ForeignKey(
        Endpoint, models.CASCADE, related_name="deliveries", db_index=False
    )
    job_id = models.BigIntegerField(null=True, help_text="none: a test delivery")
    event_id = models.BigIntegerField(null=True)
    message_id = models.TextField(help_text="webhook-id, the same for each try")
    attempt = models.PositiveIntegerField()
    at = models.DateTimeField(db_default=Now())
    milliseconds = models.PositiveIntegerField()
    status = models.PositiveSmallIntegerField(null=True, help_text="of its answer, if any")
    outcome = models.TextField(choices=Outcome.choices)
    error = models.TextField(default="", blank=True)
    answer = models.TextField(default="", blank=True, help_text="its beginning")

    class Meta:
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(F("endpoint"), F("id").desc(), name="delivery_of_endpoint"),
            models.Index(fields=["at"], name="delivery_oldest"),
        ]

    def __str__(self) -> str:
        return f"{self.message_id}, attempt {self.attempt}: {self.outcome}"
