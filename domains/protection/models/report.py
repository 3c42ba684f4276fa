from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from tailrace.domains.protection.models.stored_file import StoredFile


class Report(models.Model):
    """The report of an account for some days. `services.reports.generate` is the only writer.

    There is one report for each period. If it is generated again, it gets a new file.
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        related_name="protection_reports",
        db_index=False,
    )
    first_day = models.DateField(help_text="in the time zone of the account")
    last_day = models.DateField(help_text="the period's last day, included")
    time_zone = models.TextField()
    file = models.OneToOneField(StoredFile, models.PROTECT, related_name="report")
    totals = models.JSONField(
        default=dict, help_text="the numbers that stand in it, by section: {alerts: {total: 3}}"
    )
    is_cut = models.BooleanField(default=False, help_text="it lists less than it counts")
    generated_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "first_day", "last_day"], name="tailrace_protection_report_once"
            ),
            models.CheckConstraint(
                condition=Q(first_day__lte=F("last_day")), name="tailrace_protection_report_period"
            ),
        ]
        indexes = [models.Index(fields=["user", "-id"], name="tailrace_report_user")]

    def __str__(self) -> str:
        return f"report {self.pk}"

    @property
    def file_name(self) -> str:
        return f"protection-report-{self.first_day}-{self.last_day}.pdf"
