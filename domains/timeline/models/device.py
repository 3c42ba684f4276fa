from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

MAX_NAME = 100


class Device(models.Model):
    """A device that recorded points of a user, such as a phone or a watch. Its points come from
    itself or from imported files."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="timeline_devices", db_index=False
    )
    name = models.TextField()
    live_points = models.BigIntegerField(
        db_default=0, help_text="points whose first source is the device itself"
    )
    created_at = models.DateTimeField(db_default=Now())

    unannounced = models.IntegerField(
        db_default=0, help_text="points from the device that no event has announced yet"
    )
    unannounced_since = models.DateTimeField(null=True, blank=True)
    unannounced_first = models.DateTimeField(
        null=True, blank=True, help_text="the time of the first of these points"
    )
    unannounced_last = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="tailrace_timeline_device_once")
        ]
        indexes = [
            # `unannounced` is not indexed, because it changes with each request.
            models.Index(
                fields=["unannounced_since"],
                name="tailrace_device_unannounced",
                condition=Q(unannounced_since__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"device {self.pk}"
