from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Severity(models.IntegerChoices):
    """The severity of a finding. A more severe finding raises an alert even during the pause, and a
    critical one is always announced at once."""

    INFO = 1, "info"
    WARNING = 2, "warning"
    CRITICAL = 3, "critical"


class Alert(models.Model):
    """One or more findings of a kind at a source, of which the user is notified.
    `alerts.raising` and `services.announcing` are the only writers.

    The first notice is due when the alert is raised. Findings that join it later are announced by a
    further notice. It contains no watched value: `details` refers to objects by their ids.
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
        null=True, blank=True, help_text="when a notice was last handed to its user's channels"
    )
    notice_at = models.DateTimeField(
        null=True, blank=True, help_text="when the notice of findings that joined it later is due"
    )
    further_notices = models.IntegerField(
        default=0, db_default=0, help_text="notices after the first"
    )

    class Meta:
        indexes = [
            models.Index(fields=["user", "-id"], name="tailrace_protection_alert_user"),
            models.Index(
                fields=["user"],
                name="tailrace_alert_unannounced",
                condition=Q(announced_at__isnull=True),
            ),
            models.Index(
                fields=["user", "notice_at"],
                name="tailrace_alert_notice_of_user",
                condition=Q(notice_at__isnull=False),
            ),
            models.Index(
                fields=["notice_at"],
                name="tailrace_alert_notice",
                condition=Q(notice_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"alert {self.pk}"


class AlertPause(models.Model):
    """The pause after an alert: until `until`, findings of the same user, kind and source join this
    alert, and only a more severe finding raises another one. The lock of the row lets one worker at
    a time raise and announce alerts of the user, kind and source."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="+", db_index=False
    )
    kind = models.TextField()
    source = models.TextField()
    severity = models.SmallIntegerField(choices=Severity.choices)
    until = models.DateTimeField()
    alert = models.ForeignKey(
        Alert, models.DO_NOTHING, null=True, related_name="+", db_constraint=False, db_index=False
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "kind", "source"], name="tailrace_protection_alert_pause_once"
            )
        ]

    def __str__(self) -> str:
        return f"pause {self.pk}"


class AlertFinding(models.Model):
    """A finding of a scan. Its user learns of it by a notice of the alert that it joined."""

    # No database constraint: adding one would read the whole table.
    alert = models.ForeignKey(
        Alert, models.DO_NOTHING, null=True, related_name="+", db_constraint=False, db_index=False
    )
    announced_at = models.DateTimeField(
        null=True, help_text="when a notice named it; empty: its user was not notified of it yet"
    )

    class Meta:
        abstract = True
