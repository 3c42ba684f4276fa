from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from tailrace.net.url_secrets import shown_url


class Endpoint(models.Model):
    """A URL that events are sent to for a user, signed by Standard Webhooks."""

    class State(models.TextChoices):
        ENABLED = "enabled"
        PAUSED = "paused", "paused: deliveries wait"
        DISABLED = "disabled", "disabled: nothing is sent"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="endpoints")
    url = models.TextField()
    description = models.TextField(default="", blank=True)
    event_types = models.JSONField(
        default=list,
        db_default=[],
        blank=True,
        help_text="the event types and families that it gets; empty: all of the subscriptions",
    )
    subject_pattern = models.TextField(
        default="",
        db_default="",
        blank=True,
        help_text="only these subjects, e.g. devel:*, where * matches any text; empty: all",
    )
    secret = models.TextField(editable=False, help_text="encrypted")
    old_secret = models.TextField(default="", editable=False, help_text="encrypted")
    old_secret_until = models.DateTimeField(null=True, editable=False)
    older_secrets = models.JSONField(
        default=list,
        db_default=[],
        editable=False,
        help_text="those before the old one that still sign: encrypted, and until when",
    )
    confirmed_url = models.TextField(
        default="",
        db_default="",
        editable=False,
        help_text="the URL that answered a challenge; another one has not been confirmed",
    )
    state = models.TextField(choices=State.choices, default=State.ENABLED)
    reason = models.TextField(default="", blank=True, help_text="why it is not enabled")
    failing_since = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        indexes = [
            models.Index(
                fields=["user"],
                name="tailrace_endpoint_not_disabled",
                condition=~Q(state="disabled"),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {shown_url(self.url)}"

    @property
    def confirmed(self) -> bool:
        """Whether the URL is confirmed, or needs no confirmation: events may be sent to it."""
        return not settings.WEBHOOK_CONFIRM or self.confirmed_url == self.url

    def old_secrets_at(self, now: datetime) -> list[tuple[str, datetime]]:
        """Return the old secrets that are still valid, encrypted, and until when; newest first."""
        old = [(self.old_secret, self.old_secret_until)] if self.old_secret else []
        old += [(secret, datetime.fromisoformat(until)) for secret, until in self.older_secrets]
        return [(secret, until) for secret, until in old if until is not None and until > now]


class Delivery(models.Model):
    """One attempt to deliver to an endpoint, and its outcome."""

    class Outcome(models.TextChoices):
        OK = "ok"
        RETRY = "retry"
        FAILED = "failed"
        GONE = "gone", "gone: the endpoint was disabled"

    endpoint = models.ForeignKey(
        Endpoint, models.CASCADE, related_name="deliveries", db_index=False
    )
    job_id = models.BigIntegerField(null=True, help_text="empty for a test delivery")
    event_id = models.BigIntegerField(null=True)
    message_id = models.TextField(help_text="webhook-id, the same for all attempts")
    attempt = models.PositiveIntegerField()
    at = models.DateTimeField(db_default=Now())
    milliseconds = models.PositiveIntegerField()
    status = models.PositiveSmallIntegerField(
        null=True, help_text="HTTP status of the response, if there was one"
    )
    outcome = models.TextField(choices=Outcome.choices)
    error = models.TextField(default="", blank=True)
    answer = models.TextField(
        default="", blank=True, help_text="the beginning of the response body"
    )

    class Meta:
        verbose_name_plural = "deliveries"
        indexes = [
            models.Index(F("endpoint"), F("id").desc(), name="tailrace_delivery_of_endpoint"),
            models.Index(fields=["at"], name="tailrace_delivery_oldest"),
            models.Index(
                fields=["job_id", "id"],
                name="tailrace_delivery_of_job",
                condition=Q(job_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.message_id}, attempt {self.attempt}: {self.outcome}"
