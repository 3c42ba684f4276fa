"""The alerts of the period."""

from collections import Counter

from django.db.models import Count
from django.db.models.functions import TruncDate

from tailrace.domains.protection.alerts.texts import names_of, text_of
from tailrace.domains.protection.models import Alert, Severity
from tailrace.domains.protection.services.reports.period import Period
from tailrace.domains.protection.services.reports.section import MOST_LINES, Content, Section, short


class Alerts(Section):
    """Alerts of these days and their severity."""

    name = "alerts"
    title = "Alerts"
    order = 10
    empty = "No alerts in these days."

    def collect(self, user_id: int, period: Period) -> Content:
        raised = Alert.objects.filter(
            user=user_id, raised_at__gte=period.start, raised_at__lt=period.end
        )
        by_day = raised.annotate(day=TruncDate("raised_at", tzinfo=period.zone))
        counts = by_day.order_by().values_list("severity", "day").annotate(count=Count("pk"))
        totals: Counter[int] = Counter()
        series: dict[str, dict[object, int]] = {}
        for severity, day, count in counts:
            totals[severity] += count
            series.setdefault(Severity(severity).label, {})[day] = count
        rows = raised.order_by("-raised_at", "-pk")[:MOST_LINES]
        return Content(
            totals={
                self.name: totals.total(),
                **{level.label: totals[level] for level in reversed(Severity)},
            },
            columns=("Raised", "Severity", "What", "Names"),
            lines=[
                (
                    f"{alert.raised_at.astimezone(period.zone):%Y-%m-%d %H:%M}",
                    Severity(alert.severity).label,
                    short(text_of(alert.kind).title),
                    short(names_of(alert.kind, alert.details)),
                )
                for alert in rows
            ],
            series=series,
        )
