"""Plans, and the accounts that are subscribed to them.

    enrol ──► active ──────────────► past_due ──────────────► past_due
                ▲  ▲   mark_past_due  (in grace)  end_grace   (grace is over: no schedules)
                │  └──── resume ────────┴──────── resume ─────────┤
                │                                                 │ cancel (also from active)
                └─────────────────── resume ────────────────── cancelled

Each move is one guarded UPDATE in `tailrace.subscriptions.plans.status`. A subscription that is
active or in grace is *served*: it has the schedules of its plan.
"""

from functools import cache

from django.conf import settings
from django.core.validators import (
    MaxValueValidator,
    MinValueValidator,
    ProhibitNullCharactersValidator,
)
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.environment.discovery import subclasses
from tailrace.jobs.handler import Handler
from tailrace.subscriptions.models.person import check_time_zone


class Plan(models.Model):
    """A set of jobs that run at regular times for each account that is subscribed to it."""

    name = models.TextField(
        unique=True,
        max_length=50,
        validators=[ProhibitNullCharactersValidator()],
        help_text="the API names the plan by it",
    )
    monitoring = models.BooleanField(
        default=False,
        db_default=False,
        help_text="its accounts are watched by the change feeds, which are polled once for all",
    )
    rewrite_after = models.BigIntegerField(
        null=True,
        editable=False,
        help_text="while the schedules of its subscriptions are rewritten: the last that is done",
    )

    def __str__(self) -> str:
        return self.name


class PlanJob(models.Model):
    """A job of a plan, which runs daily, weekly or monthly for each account of the plan."""

    class Frequency(models.TextChoices):
        DAILY = "daily"
        WEEKLY = "weekly"
        MONTHLY = "monthly"

    plan = models.ForeignKey(Plan, models.CASCADE, related_name="jobs", db_index=False)
    handler = models.TextField(
        max_length=200, validators=[ProhibitNullCharactersValidator()], help_text="its name"
    )
    frequency = models.TextField(choices=Frequency.choices)
    installed = models.BooleanField(
        default=False,
        db_default=False,
        editable=False,
        help_text="whether the handler is installed; without it there are no schedules",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["plan", "handler"], name="tailrace_plan_job_once"),
            models.CheckConstraint(
                condition=Q(frequency__in=["daily", "weekly", "monthly"]),
                name="tailrace_plan_job_frequency",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.handler} {self.frequency}"

    @property
    def title(self) -> str:
        """The job's title for customers: the `plan_title` of its handler, such as `Dark-web scan`;
        without one, the words of the handler's name."""
        words = self.handler.rpartition(".")[2].replace("_", " ").capitalize()
        return _titles().get(self.handler, words)


@cache
def _titles() -> dict[str, str]:
    """Return the titles that handlers declare."""
    classes = (cls for cls in subclasses(Handler) if hasattr(cls, "plan_title"))
    return {cls.name: str(cls.plan_title) for cls in classes}


class PlanSubscriptionQuerySet(models.QuerySet["PlanSubscription"]):
    def served(self) -> "PlanSubscriptionQuerySet":
        """Return the subscriptions whose jobs run: active, or past due and still in grace."""
        return self.filter(Q(status="active") | Q(grace_until__isnull=False))

    def serves(self, account: int) -> bool:
        """Return whether this account may sign in and has a plan whose jobs run."""
        return self.served().filter(account=account, account__is_active=True).exists()

    def monitored(self) -> "PlanSubscriptionQuerySet":
        """Return the served subscriptions whose plan has monitoring, for the change feeds."""
        return self.served().filter(plan__monitoring=True)


class PlanSubscription(models.Model):
    """The plan of an account. Only `tailrace.subscriptions.plans` writes its rows."""

    class Status(models.TextChoices):
        ACTIVE = "active", "active"
        PAST_DUE = "past_due", "past due"
        CANCELLED = "cancelled", "cancelled"

    account = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="plan_subscription"
    )
    plan = models.ForeignKey(Plan, models.PROTECT, related_name="subscriptions", db_index=False)
    status = models.TextField(choices=Status.choices, default=Status.ACTIVE)
    anchor_day = models.PositiveSmallIntegerField(
        validators=[MinValueValidator(1), MaxValueValidator(31)],
        help_text="day of the month of monthly jobs; 29 to 31 are the last day",
    )
    time_zone = models.TextField(default="UTC", validators=[check_time_zone])
    grace_until = models.DateTimeField(
        null=True, blank=True, editable=False, help_text="when its jobs stop; empty if they have"
    )
    last_runs = models.JSONField(
        default=dict,
        editable=False,
        help_text="when the jobs ran last of which it has no schedule now, by handler",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = PlanSubscriptionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(status__in=["active", "past_due", "cancelled"]),
                name="tailrace_plan_subscription_status",
            ),
            models.CheckConstraint(
                condition=Q(anchor_day__gte=1, anchor_day__lte=31),
                name="tailrace_plan_subscription_anchor_day",
            ),
            models.CheckConstraint(
                condition=Q(grace_until=None) | Q(status="past_due"),
                name="tailrace_plan_subscription_grace",
            ),
        ]
        indexes = [
            models.Index(fields=["plan", "id"], name="tailrace_subscription_of_plan"),
            models.Index(
                fields=["grace_until"],
                name="tailrace_plan_in_grace",
                condition=Q(grace_until__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"subscription {self.pk}"

    @property
    def is_served(self) -> bool:
        """Whether the plan's jobs run: see `PlanSubscriptionQuerySet.served`."""
        return self.status == self.Status.ACTIVE or self.grace_until is not None

    @property
    def is_cancelled(self) -> bool:
        return self.status == self.Status.CANCELLED


class PlanChange(models.Model):
    """An entry of a subscription's audit trail, which is kept as long as the subscription."""

    class Action(models.TextChoices):
        ENROLLED = "enrolled"
        CHANGED = "changed"
        PAST_DUE = "past_due", "past due"
        GRACE_ENDED = "grace_ended", "grace ended"
        RESUMED = "resumed"
        CANCELLED = "cancelled"

    subscription = models.ForeignKey(
        PlanSubscription, models.CASCADE, related_name="changes", db_index=False
    )
    at = models.DateTimeField(db_default=Now())
    action = models.TextField(choices=Action.choices)
    details = models.TextField(default="", db_default="", help_text="old and new values, or why")
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        related_name="+",
        help_text="empty: the program, or somebody whose account is deleted",
    )

    class Meta:
        indexes = [models.Index(fields=["subscription", "id"], name="tailrace_changes_of_plan")]

    def __str__(self) -> str:
        return f"{self.action}: {self.details}" if self.details else self.action
