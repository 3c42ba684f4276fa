from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from tailrace.events.models import Event
from tailrace.subscriptions.models.subscription import ForUserOrGroup


class Notification(ForUserOrGroup):
    """The record that a user or group is notified of an event, and in which role."""

    # No database constraint, as for jobs: events are pruned separately.
    event = models.ForeignKey(
        Event, models.DO_NOTHING, related_name="notifications", db_constraint=False, db_index=False
    )
    role = models.TextField(help_text="the reason: the first role that applies")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event", "user", "group"],
                nulls_distinct=False,
                name="tailrace_notification_once",
            ),
            models.CheckConstraint(
                condition=Q(user=None, group__isnull=False) | Q(user__isnull=False, group=None),
                name="tailrace_notification_one_recipient",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user or self.group} is notified of event {self.event_id} as {self.role}"


class InboxItem(ForUserOrGroup):
    """The newest event about one thing, in the inbox of a user or a group. A newer event replaces
    the older one, and the item becomes unread."""

    thing = models.TextField(help_text="what the events are about: a request, a build …")
    event = models.ForeignKey(Event, models.DO_NOTHING, related_name="+", db_constraint=False)
    role = models.TextField(help_text="the role that is the reason")
    events = models.PositiveIntegerField(default=1, help_text="number of events about this thing")
    arrived_at = models.DateTimeField(db_default=Now(), help_text="when the newest event arrived")
    read_at = models.DateTimeField(
        null=True, blank=True, help_text="when the newest event was read"
    )
    last_seen_at = models.DateTimeField(
        null=True, blank=True, help_text="when an event about this thing was last read"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "group", "thing"],
                nulls_distinct=False,
                name="tailrace_inbox_item_once",
            ),
            models.CheckConstraint(
                condition=Q(user=None, group__isnull=False) | Q(user__isnull=False, group=None),
                name="tailrace_inbox_item_one_owner",
            ),
        ]
        indexes = [
            models.Index(
                F("user"), F("arrived_at").desc(), F("id").desc(), name="tailrace_inbox_of_user"
            ),
            models.Index(
                F("group"), F("arrived_at").desc(), F("id").desc(), name="tailrace_inbox_of_group"
            ),
            models.Index(fields=["arrived_at"], name="tailrace_inbox_oldest"),
        ]

    def __str__(self) -> str:
        return f"{self.user or self.group}: {self.thing}"
