from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from events.models import Event


class Notification(models.Model):
    """That somebody is told of an event, and why. Its text is the event's; none is kept here."""

    # As with jobs: no database constraint on the event, which is pruned on its own.
    event = models.ForeignKey(
        Event, models.DO_NOTHING, related_name="notifications", db_constraint=False, db_index=False
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="notifications",
    )
    group = models.ForeignKey(
        Group, models.CASCADE, null=True, blank=True, related_name="notifications"
    )
    role = models.TextField(help_text="the reason: the first role that fits")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event", "user", "group"],
                nulls_distinct=False,
                name="notification_once",
            ),
            models.CheckConstraint(
                condition=Q(user=None, group__isnull=False) | Q(user__isnull=False, group=None),
                name="notification_one_recipient",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user or self.group} hears of event {self.event_id} as {self.role}"


class InboxItem(models.Model):
    """The newest event on one thing, in the inbox of a user or a group.

    A newer event on the same thing takes the older one's place and is unread again.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="inbox"
    )
    group = models.ForeignKey(Group, models.CASCADE, null=True, blank=True, related_name="inbox")
    thing = models.TextField(help_text="what its events have in common: a request, a build …")
    event = models.ForeignKey(Event, models.DO_NOTHING, related_name="+", db_constraint=False)
    role = models.TextField(help_text="the reason")
    events = models.PositiveIntegerField(default=1, help_text="on this thing, so far")
    arrived_at = models.DateTimeField(db_default=Now(), help_text="the newest")
    read_at = models.DateTimeField(null=True, blank=True, help_text="the newest, if it was")
    last_seen_at = models.DateTimeField(
        null=True, blank=True, help_text="when something on this thing was read last"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "group", "thing"], nulls_distinct=False, name="inbox_item_once"
            ),
            models.CheckConstraint(
                condition=Q(user=None, group__isnull=False) | Q(user__isnull=False, group=None),
                name="inbox_item_one_owner",
            ),
        ]
        indexes = [
            models.Index(F("user"), F("arrived_at").desc(), F("id").desc(), name="inbox_of_user"),
            models.Index(F("group"), F("arrived_at").desc(), F("id").desc(), name="inbox_of_group"),
            models.Index(fields=["arrived_at"], name="inbox_oldest"),
        ]

    def __str__(self) -> str:
        return f"{self.user or self.group}: {self.thing}"
