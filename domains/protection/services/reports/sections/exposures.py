"""The exposures of the period."""

from collections import Counter

from django.db.models import Count

from tailrace.domains.protection.models import Exposure, Severity
from tailrace.domains.protection.services.reports.period import Period
from tailrace.domains.protection.services.reports.section import MOST_LINES, Content, Section, short


class Exposures(Section):
    """Breaches in which scans of these days found a watched value."""

    name = "exposures"
    title = "Exposures"
    order = 20
    empty = "No watched value was newly exposed in these days."

    def collect(self, user_id: int, period: Period) -> Content:
        exposures = Exposure.objects.filter(
            user=user_id, first_at__gte=period.start, first_at__lt=period.end
        )
        counts = exposures.order_by().values_list("state").annotate(count=Count("pk"))
        by_state = Counter(dict(counts))
        rows = exposures.select_related("item", "breach").order_by("-first_at", "-pk")
        return Content(
            totals={
                self.name: by_state.total(),
                **{state.label.lower(): by_state[state] for state in Exposure.State},
            },
            columns=("Found", "Severity", "Value", "Breach", "State"),
            lines=[
                (
                    f"{row.first_at.astimezone(period.zone):%Y-%m-%d}",
                    Severity(row.severity).label,
                    short(row.item.masked),
                    short(row.breach.title),
                    row.state,
                )
                for row in rows[:MOST_LINES]
            ],
        )
