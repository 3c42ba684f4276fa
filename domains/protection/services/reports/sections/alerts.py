"""The alerts of the period."""

from collections.abc import Sequence

from django.db.models import QuerySet

from tailrace.domains.protection.alerts.texts import names_of, text_of
from tailrace.domains.protection.models import Alert, Severity
from tailrace.domains.protection.services.reports.charts import bars
from tailrace.domains.protection.services.reports.period import Period
from tailrace.domains.protection.services.reports.section import DayCounts, Section


class Alerts(Section):
    """Alerts of these days and their severity."""

    name = "alerts"
    title = "Alerts"
    order = 10
    empty = "No alerts in these days."
    time, time_format = "raised_at", "%Y-%m-%d %H:%M"
    group, choices = "severity", tuple(reversed(Severity))
    columns = ("Raised", "Severity", "What", "Names")

    def rows(self, user_id: int) -> QuerySet[Alert]:
        return Alert.objects.filter(user=user_id)

    def cells(self, row: Alert) -> Sequence[object]:
        title, names = text_of(row.kind).title, names_of(row.kind, row.details)
        return Severity(row.severity).label, title, names

    def chart(self, counts: DayCounts, period: Period) -> str:
        series: dict[str, dict[object, int]] = {}
        for (severity, day), count in counts.items():
            series.setdefault(Severity(severity).label, {})[day] = count
        return bars(series, period)
