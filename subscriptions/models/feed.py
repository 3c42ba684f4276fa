from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.events.models import Event


class Feed(models.Model):
    """A user's news feed. Anyone with its token can read it; only the token's hash is stored."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="feeds")
    title = models.CharField(max_length=100, default="Tailrace")
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["user"], name="tailrace_feed_live", condition=Q(revoked_at=None)),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.title}"


class FeedItem(models.Model):
    """An event in a user's feeds."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="feed_items", db_index=False
    )
    event = models.ForeignKey(Event, models.DO_NOTHING, related_name="+", db_constraint=False)
    role = models.TextField()
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "event"], name="tailrace_feed_item_once"),
        ]

    def __str__(self) -> str:
        return f"event {self.event_id} for {self.user_id}"
