from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Device(models.Model):
    """A browser with push enabled: a push subscription (RFC 8030, 8291)."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="devices")
    url = models.TextField(unique=True, help_text="the address of this browser at its push service")
    p256dh = models.TextField(help_text="the browser's public key, base64url")
    auth = models.TextField(help_text="the browser's secret, base64url")
    name = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    gone_at = models.DateTimeField(
        null=True,
        blank=True,
        help_text="when the push service reported that its subscription ended",
    )

    class Meta:
        indexes = [
            models.Index(fields=["user"], name="tailrace_device_live", condition=Q(gone_at=None)),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.name or 'a browser'}"
