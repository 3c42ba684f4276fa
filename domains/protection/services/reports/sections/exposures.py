"""The exposures of the period."""

from collections.abc import Sequence

from django.db.models import QuerySet

from tailrace.domains.protection.models import Exposure, Severity
from tailrace.domains.protection.services.reports.section import Section


class Exposures(Section):
    """Breaches in which scans of these days found a watched value."""

    name = "exposures"
    title = "Exposures"
    order = 20
    empty = "No watched value was newly exposed in these days."
    time = "first_at"
    group, choices = "state", tuple(Exposure.State)
    columns = ("Found", "Severity", "Value", "Breach", "State")

    def rows(self, user_id: int) -> QuerySet[Exposure]:
        return Exposure.objects.filter(user=user_id).select_related("item", "breach")

    def cells(self, row: Exposure) -> Sequence[object]:
        return Severity(row.severity).label, row.item.masked, row.breach.title, row.state
