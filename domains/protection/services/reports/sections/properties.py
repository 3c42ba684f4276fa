"""The changes of watched properties in the period."""

from collections.abc import Sequence

from django.db.models import QuerySet

from tailrace.domains.protection.models import ChangeKind, PropertyChange, Severity
from tailrace.domains.protection.services.reports.section import Section


class Properties(Section):
    """Changes in the public records of watched properties that scans of these days found."""

    name = "changes"
    title = "Property changes"
    order = 30
    empty = "No change of a watched property was found in these days."
    time = "noticed_at"
    group, choices = "kind", tuple(ChangeKind)
    columns = ("Found", "Severity", "Property", "Change")

    def rows(self, user_id: int) -> QuerySet[PropertyChange]:
        return PropertyChange.objects.filter(property__user=user_id).select_related("property")

    def cells(self, row: PropertyChange) -> Sequence[object]:
        return Severity(row.severity).label, row.property.title, ChangeKind(row.kind).label
