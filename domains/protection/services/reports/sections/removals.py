"""The removal requests that changed in the period."""

from collections import Counter

from django.db.models import Count

from tailrace.domains.protection.models import RemovalRequest, RemovalState
from tailrace.domains.protection.services.removals.brokers import name_of
from tailrace.domains.protection.services.reports.period import Period
from tailrace.domains.protection.services.reports.section import MOST_LINES, Content, Section, short


class Removals(Section):
    """Removal requests at data brokers whose state last changed in these days."""

    name = "removals"
    title = "Removals"
    order = 40
    empty = "No removal request changed in these days."

    def collect(self, user_id: int, period: Period) -> Content:
        requests = RemovalRequest.objects.filter(
            user=user_id, changed_at__gte=period.start, changed_at__lt=period.end
        )
        counts = requests.order_by().values_list("state").annotate(count=Count("pk"))
        by_state = Counter(dict(counts))
        return Content(
            totals={
                self.name: by_state.total(),
                **{str(state.label).lower(): by_state[state] for state in RemovalState},
            },
            columns=("Changed", "Data broker", "State"),
            lines=[
                (
                    f"{row.changed_at.astimezone(period.zone):%Y-%m-%d}",
                    short(name_of(row.broker)),
                    str(RemovalState(row.state).label).lower(),
                )
                for row in requests.order_by("-changed_at", "-pk")[:MOST_LINES]
            ],
        )
