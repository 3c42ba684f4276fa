"""The removal requests that changed in the period."""

from collections.abc import Sequence

from django.db.models import QuerySet

from tailrace.domains.protection.models import RemovalRequest, RemovalState
from tailrace.domains.protection.services.removals.brokers import name_of
from tailrace.domains.protection.services.reports.section import Section


class Removals(Section):
    """Removal requests at data brokers whose state last changed in these days."""

    name = "removals"
    title = "Removals"
    order = 40
    empty = "No removal request changed in these days."
    time = "changed_at"
    group, choices = "state", tuple(RemovalState)
    columns = ("Changed", "Data broker", "State")

    def rows(self, user_id: int) -> QuerySet[RemovalRequest]:
        return RemovalRequest.objects.filter(user=user_id)

    def cells(self, row: RemovalRequest) -> Sequence[object]:
        return name_of(row.broker), str(RemovalState(row.state).label).lower()
