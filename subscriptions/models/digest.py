from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.events.models import Event
from tailrace.subscriptions.models.subscription import EventSubscription, ForUserOrGroup


class Digest(ForUserOrGroup):
    """The mail that a user, or a group with an address, gets at the end of a window."""

    pace = models.TextField(choices=EventSubscription.Pace.choices)
    window_end = models.DateTimeField(help_text="when the digest is sent")
    created_at = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "group", "pace", "window_end"],
                nulls_distinct=False,
                name="tailrace_digest_once",
            ),
            models.CheckConstraint(
                condition=Q(user=None, group__isnull=False) | Q(user__isnull=False, group=None),
                name="tailrace_digest_one_recipient",
            ),
        ]
        indexes = [
            models.Index(
                fields=["window_end"], name="tailrace_digest_unsent", condition=Q(sent_at=None)
            ),
        ]

    def __str__(self) -> str:
        recipient, end = self.user or self.group, f"{self.window_end:%Y-%m-%d %H:%M:%S} UTC"
        return f"{self.pace} digest of {recipient}, {end}"


class DigestItem(models.Model):
    """An event in a digest."""

    digest = models.ForeignKey(Digest, models.CASCADE, related_name="items", db_index=False)
    event = models.ForeignKey(Event, models.DO_NOTHING, related_name="+", db_constraint=False)
    role = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["digest", "event"], name="tailrace_digest_item_once"),
        ]

    def __str__(self) -> str:
        return f"event {self.event_id} in digest {self.digest_id}"
