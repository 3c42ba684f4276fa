from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.domains.protection.models.alert import AlertFinding


class RemovalState(models.TextChoices):
    """
                 ┌────────────── reappears ───────────────┐
                 ▼                                        │
    start ─► pending ─► submitted ─► awaiting ────────► removed
                 │ ▲        │  │   confirmation            ▲
                 │ │        │  └───────────┼──────────────►│
                 ▼ │        ▼              ▼               │
               needs person ──────────────────────────────►│
                 │ ▲
                 ▼ │ (an operator tries it again)
               rejected

    The user may withdraw a request in every state but rejected. Rejected and withdrawn requests
    have ended.
    """

    PENDING = "pending"
    SUBMITTED = "submitted"
    AWAITING = "awaiting_confirmation", "awaiting confirmation"
    REMOVED = "removed"
    REJECTED = "rejected"
    NEEDS_PERSON = "needs_person", "needs a person"
    WITHDRAWN = "withdrawn"


ENDED = (RemovalState.REJECTED, RemovalState.WITHDRAWN)
_STOPS = (RemovalState.NEEDS_PERSON, RemovalState.WITHDRAWN)
MOVES: dict[str, tuple[RemovalState, ...]] = {
    RemovalState.PENDING: (RemovalState.SUBMITTED, *_STOPS),
    RemovalState.SUBMITTED: (RemovalState.AWAITING, RemovalState.REMOVED, *_STOPS),
    RemovalState.AWAITING: (RemovalState.REMOVED, *_STOPS),
    RemovalState.NEEDS_PERSON: (
        RemovalState.PENDING,
        RemovalState.SUBMITTED,
        RemovalState.AWAITING,
        RemovalState.REMOVED,
        RemovalState.REJECTED,
        RemovalState.WITHDRAWN,
    ),
    RemovalState.REMOVED: (RemovalState.PENDING, *_STOPS),
    RemovalState.REJECTED: (RemovalState.PENDING,),
    RemovalState.WITHDRAWN: (),
}
"""The legal moves. `services.removals.moves.move` makes them."""


class RemovalStep(models.TextChoices):
    """The next step of a request, done by a job or, while the request is parked, by a person."""

    SUBMIT = "submit"
    CONFIRM = "confirm"
    VERIFY = "verify"


class RemovalQuerySet(models.QuerySet["RemovalRequest"]):
    def open(self) -> "RemovalQuerySet":
        """Requests that have not ended. A removed request has not: its listing is still checked."""
        return self.exclude(state__in=ENDED)


class RemovalRequest(models.Model):
    """A user's request that a data broker removes the data of a person.

    `services.removals.moves` is the only writer of its state.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="removal_requests", db_index=False
    )
    broker = models.TextField(help_text="key of the broker in PROTECTION_BROKERS_FILE")
    person = models.TextField(
        help_text="whose data is to be removed, encrypted; empty once it is withdrawn"
    )
    key_id = models.TextField(help_text="the key that it is encrypted with")
    state = models.TextField(choices=RemovalState.choices, default=RemovalState.PENDING)
    step = models.TextField(choices=RemovalStep.choices, default=RemovalStep.SUBMIT)
    note = models.TextField(default="", blank=True, help_text="why it is in this state")
    submission = models.PositiveIntegerField(
        default=1, help_text="how often it was begun: a repeated submission has the same number"
    )
    confirm_url = models.TextField(
        default="", blank=True, help_text="the broker's link to follow, encrypted"
    )
    checks = models.PositiveIntegerField(
        default=0, help_text="verification scans of this submission that saw no removal"
    )
    job_id = models.BigIntegerField(null=True, blank=True, help_text="the job of the next step")
    next_at = models.DateTimeField(null=True, blank=True, help_text="when that is due")
    created_at = models.DateTimeField(db_default=Now())
    changed_at = models.DateTimeField(db_default=Now(), help_text="when its state last changed")
    submitted_at = models.DateTimeField(null=True, blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)

    objects = RemovalQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "broker"],
                name="tailrace_protection_removal_open_once",
                condition=~Q(state__in=ENDED),
            )
        ]
        indexes = [
            models.Index(fields=["user", "-id"], name="tailrace_removal_user"),
            models.Index(
                fields=["next_at"],
                name="tailrace_removal_next",
                condition=Q(next_at__isnull=False),
            ),
            models.Index(fields=["key_id"], name="tailrace_removal_key", condition=~Q(person="")),
            models.Index(
                fields=["-id"],
                name="tailrace_removal_parked",
                condition=Q(state=RemovalState.NEEDS_PERSON),
            ),
        ]
        permissions = [
            (
                "decide_removalrequest",
                "Can do what parked removals need, and read whose data they are about",
            )
        ]

    def __str__(self) -> str:
        return f"removal {self.pk}"


class RemovalChange(AlertFinding):
    """A move in the history of a request: who made it, and why. A move of which the user is
    notified has an alert."""

    request = models.ForeignKey(RemovalRequest, models.CASCADE, related_name="changes")
    at = models.DateTimeField()
    old_state = models.TextField(blank=True, choices=RemovalState.choices)
    new_state = models.TextField(choices=RemovalState.choices)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="nobody: a job",
    )
    note = models.TextField(default="", blank=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["alert"],
                name="tailrace_removal_unannounced",
                condition=Q(announced_at__isnull=True, alert__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"change {self.pk}"
