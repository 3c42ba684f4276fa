from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Severity(models.IntegerChoices):
    """The severity of a finding. A more severe finding raises an alert even during the pause."""

    INFO = 1, "info"
    WARNING = 2, "warning"
    CRITICAL = 3, "critical"


class Alert(models.Model):
    """Something that a user should know. `alerts.raising.raise_alerts` is the only writer.

    It contains no watched value: `details` refers to objects by their ids.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="protection_alerts", db_index=False
    )
    kind = models.TextField(help_text="what was found: exposure, lien_filing …")
    source = models.TextField(help_text="where: a provider, or property:<id>")
    severity = models.SmallIntegerField(choices=Severity.choices)
    details = models.JSONField(default=dict)
    raised_at = models.DateTimeField(db_default=Now())
    announced_at = models.DateTimeField(
        null=True, blank=True, help_text="when it was handed to the channels of its user"
    )

    class Meta:
        indexes = [
            models.Index(fields=["user", "-id"], name="tailrace_protection_alert_user"),
            models.Index(
                fields=["user"],
                name="tailrace_alert_unannounced",
                condition=Q(announced_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"alert {self.pk}"


class AlertPause(models.Model):
    """Until this time only a more severe finding raises another alert of this user, kind and
    source.

    With the unique constraint only one of several workers with the same finding raises an alert.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False
    )
    kind = models.TextField()
    source = models.TextField()
    severity = models.SmallIntegerField(choices=Severity.choices)
    until = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "kind", "source"], name="tailrace_protection_alert_pause_once"
            )
        ]

    def __str__(self) -> str:
        return f"pause {self.pk}"
