from datetime import datetime

from django.db import models


class Breaker(models.Model):
    """A destination that failed of late, and until when it is left alone. All workers share it."""

    name = models.TextField(primary_key=True, help_text="queue and destination")
    failures = models.PositiveIntegerField(default=0, help_text="in a row")
    opened = models.PositiveIntegerField(default=0, help_text="times, without a success between")
    open_until = models.DateTimeField(
        null=True, blank=True, help_text="open until then: nothing is sent; afterwards one try"
    )
    last_error = models.TextField(default="", blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        permissions = [("close_breaker", "Can have a destination tried at once")]

    def __str__(self) -> str:
        return self.name

    def stands_at(self, now: datetime) -> str:
        """Say in a word how the destination does."""
        if self.open_until is None:
            return "well" if not self.failures else "shaky"
        return "left alone" if self.open_until > now else "to be tried"


class Bucket(models.Model):
    """What a destination may be sent yet: tokens, refilled at a rate. All workers share it."""

    name = models.TextField(primary_key=True, help_text="queue and destination")
    tokens = models.FloatField()
    at = models.DateTimeField(help_text="when there were so many")

    def __str__(self) -> str:
        return self.name
