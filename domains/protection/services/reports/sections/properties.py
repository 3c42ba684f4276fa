"""The changes of watched properties in the period."""

from collections import Counter

from django.db.models import Count

from tailrace.domains.protection.models import ChangeKind, PropertyChange, Severity
from tailrace.domains.protection.services.reports.period import Period
from tailrace.domains.protection.services.reports.section import MOST_LINES, Content, Section, short


class Properties(Section):
    """Changes in the public records of watched properties that scans of these days found."""

    name = "changes"
    title = "Property changes"
    order = 30
    empty = "No change of a watched property was found in these days."

    def collect(self, user_id: int, period: Period) -> Content:
        changes = PropertyChange.objects.filter(
            property__user=user_id, noticed_at__gte=period.start, noticed_at__lt=period.end
        )
        counts = changes.order_by().values_list("kind").annotate(count=Count("pk"))
        by_kind = Counter(dict(counts))
        rows = changes.select_related("property").order_by("-noticed_at", "-pk")
        return Content(
            totals={
                self.name: by_kind.total(),
                **{str(kind.label): by_kind[kind] for kind in ChangeKind},
            },
            columns=("Found", "Severity", "Property", "Change"),
            lines=[
                (
                    f"{row.noticed_at.astimezone(period.zone):%Y-%m-%d}",
                    Severity(row.severity).label,
                    short(row.property.title),
                    str(ChangeKind(row.kind).label),
                )
                for row in rows[:MOST_LINES]
            ],
        )
