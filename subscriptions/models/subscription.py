from typing import Any

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.core.validators import ProhibitNullCharactersValidator
from django.db import models
from django.db.models import F, Q

from tailrace.environment.suggest import did_you_mean
from tailrace.events.catalog.topics import all_topic_names
from tailrace.subscriptions.types import roles
from tailrace.subscriptions.types.channel import all_channels, channel_choices


class ForUserOrGroup(models.Model):
    """A row about a user or a group."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+"
    )
    group = models.ForeignKey(Group, models.CASCADE, null=True, blank=True, related_name="+")

    class Meta:
        abstract = True


class EventSubscription(ForUserOrGroup):
    """Whether a receiver is notified of events of a type, in a role, by a channel. A row without
    user and group is the default of those without a row of their own."""

    class State(models.TextChoices):
        ON = "on"
        OFF = "off"

    class Pace(models.TextChoices):
        INSTANT = "instant"
        HOURLY = "hourly"
        DAILY = "daily"
        WEEKLY = "weekly"

    event_type = models.TextField(help_text="an event type, a family of types, or * for all")
    role = models.TextField(help_text="the receiver role, e.g. maintainer")
    channel = models.TextField(choices=channel_choices)
    state = models.TextField(choices=State.choices, default=State.ON)
    pace = models.TextField(
        choices=Pace.choices,
        db_default=Pace.INSTANT,
        default=Pace.INSTANT,
        help_text="for mail: at once or in a digest",
    )
    subject_pattern = models.TextField(
        default="",
        blank=True,
        max_length=200,
        validators=[ProhibitNullCharactersValidator()],
        help_text="only these subjects, e.g. devel:*, where * matches any text; empty: all",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event_type", "role", "channel", "user", "group"],
                nulls_distinct=False,
                name="tailrace_subscription_once",
            ),
            models.CheckConstraint(
                condition=Q(user=None) | Q(group=None), name="tailrace_subscription_user_or_group"
            ),
            models.CheckConstraint(
                condition=Q(state="on") | Q(subject_pattern=""),
                name="tailrace_subscription_off_is_whole",
            ),
            models.CheckConstraint(
                condition=Q(pace="instant") | Q(channel="mail"),
                name="tailrace_subscription_pace_of_mail",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event_type} · {self.role} · {self.receiver} · {self.channel}: {self.state}"

    @property
    def receiver(self) -> str:
        return str(self.user or self.group or "default")

    @classmethod
    def own_key(cls, user: User, event_type: str, role: str, channel: str) -> dict[str, Any]:
        """Return the unique key of a user's own subscription."""
        key = {"event_type": event_type, "role": role, "channel": channel}
        return {"user": user, "group": None, **key}

    def clean(self) -> None:
        """Raise ValidationError for unknown names and meaningless combinations."""
        errors = {}
        if self.event_type not in (names := all_topic_names()):
            hint = did_you_mean(self.event_type, names)
            errors["event_type"] = f"there is no event type or family with this name{hint}"
        if roles.find(self.role) is None:
            known = [role.name for role in roles.all_roles()]
            errors["role"] = f"there is no role with this name{did_you_mean(self.role, known)}"
        if self.state == self.State.OFF and self.subject_pattern:
            errors["subject_pattern"] = "off applies to all subjects: leave it empty"
        channel = all_channels().get(self.channel)
        if self.pace != self.Pace.INSTANT and not (channel and channel.has_digests):
            errors["pace"] = f"{self.channel} has no digests: choose instant"
        if errors:
            raise ValidationError(errors)


class Block(models.Model):
    """The choice of `user` not to be notified about actions of the user `blocked`."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="blocks")
    blocked = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "blocked"], name="tailrace_block_once"),
            models.CheckConstraint(
                condition=~Q(user=F("blocked")), name="tailrace_block_not_oneself"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} blocks {self.blocked}"
