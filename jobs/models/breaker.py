from datetime import datetime

from django.db import models


class Breaker(models.Model):
    """The circuit breaker of a destination that has failed. All workers share it."""

    name = models.TextField(primary_key=True, help_text="queue and destination")
    failures = models.PositiveIntegerField(default=0, help_text="failures in a row")
    opened = models.PositiveIntegerField(default=0, help_text="times since the last success")
    open_until = models.DateTimeField(
        null=True,
        blank=True,
        help_text="nothing is sent until then; then one message, as a test",
    )
    last_error = models.TextField(default="", blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        permissions = [("close_breaker", "Can have a destination tried at once")]

    def __str__(self) -> str:
        return self.name

    def state_at(self, now: datetime) -> str:
        """Return "closed", "degraded" (failures since the last success), "half-open" (one message
        may be sent) or "open"."""
        if self.open_until is None:
            return "degraded" if self.failures else "closed"
        return "open" if self.open_until > now else "half-open"


class Bucket(models.Model):
    """A token bucket that limits how much is sent to a destination. All workers share it."""

    name = models.TextField(primary_key=True, help_text="queue and destination")
    tokens = models.FloatField()
    at = models.DateTimeField(help_text="when the tokens were counted")

    def __str__(self) -> str:
        return self.name
