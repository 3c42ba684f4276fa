from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from tailrace.domains.protection.models.alert import AlertFinding, Severity
from tailrace.domains.protection.models.watchlist import WatchlistItem


class Breach(models.Model):
    """A leak that a source knows, the same for all users."""

    source = models.TextField(help_text="who knows it, such as hibp_breaches")
    name = models.TextField(help_text="how the source calls it")
    title = models.TextField()
    domain = models.TextField(default="", blank=True, help_text="the site that lost the data")
    breached_on = models.DateField(null=True, blank=True)
    added_at = models.DateTimeField(null=True, blank=True, help_text="when the source added it")
    modified_at = models.DateTimeField(null=True, blank=True)
    data_classes = models.JSONField(default=list, help_text="what was lost, in the source's words")
    description = models.TextField(default="", blank=True, help_text="plain text, without HTML")
    listed = models.BooleanField(
        default=False,
        db_default=False,
        help_text="it stood in the source's list of breaches",
    )
    accounts = models.BigIntegerField(null=True, blank=True, help_text="how many it concerns")

    class Meta:
        verbose_name_plural = "breaches"
        constraints = [
            models.UniqueConstraint(
                fields=["source", "name"], name="tailrace_protection_breach_once"
            )
        ]

    def __str__(self) -> str:
        return self.title


class BreachFeed(models.Model):
    """How far a provider's list of new breaches was read. The row exists after the first read."""

    name = models.TextField(primary_key=True)
    latest = models.TextField(help_text="the breach that was the newest")
    listed_at = models.DateTimeField(help_text="when the whole list was read")

    def __str__(self) -> str:
        return self.name


class ExposureState(models.TextChoices):
    """
    new ──► known ──► resolved
      └────────────────▲

    Scans create exposures as `new`. Their user moves them in both directions, with
    `services.exposures.moves.move`.
    """

    NEW = "new"
    KNOWN = "known"
    RESOLVED = "resolved"


class Exposure(AlertFinding):
    """A watched value in a breach. There is one row for both, even if several scans find it."""

    State: ClassVar[type[ExposureState]] = ExposureState

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="exposures", db_index=False
    )
    item = models.ForeignKey(
        WatchlistItem, models.CASCADE, related_name="exposures", db_index=False
    )
    breach = models.ForeignKey(Breach, models.PROTECT, related_name="exposures")
    state = models.TextField(choices=ExposureState.choices, default=ExposureState.NEW)
    severity = models.SmallIntegerField(choices=Severity.choices)
    first_at = models.DateTimeField(db_default=Now(), help_text="when a scan came upon it")
    moved_at = models.DateTimeField(null=True, blank=True, help_text="when its state changed")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["item", "breach"], name="tailrace_protection_exposure_once"
            )
        ]
        indexes = [
            models.Index(fields=["user", "-id"], name="tailrace_exposure_user"),
            models.Index(
                fields=["alert"],
                name="tailrace_exposure_unannounced",
                condition=Q(announced_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"exposure {self.pk}"
