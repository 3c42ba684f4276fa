"""Jobs by filters, newest first, at a bounded cost."""

from dataclasses import dataclass

from django.db.models import QuerySet

from tailrace.jobs.inspection.flow import flow_of
from tailrace.jobs.models import Job
from tailrace.jobs.search.find import SearchResult, scans
from tailrace.jobs.search.terms import Terms
from tailrace.jobs.states import State
from tailrace.web.pagination import decode

WINDOW = 10_000
"""Jobs that a page reads at most if no index serves its filters."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What the jobs of a list have in common; None: anything."""

    handler: str | None = None
    state: str | None = None
    event: int | None = None
    schedule: int | None = None
    flow: int | None = None
    """A job of it."""
    failure: int | None = None
    search: SearchResult | None = None
    """The jobs of a search."""

    def scans(self) -> bool:
        """Return whether no index serves the filters."""
        filters = {
            "handler": self.handler,
            "state": self.state,
            "event": self.event,
            "schedule": self.schedule,
            "flow": self.flow,
            "failure": self.failure,
        }
        return scans(self.search.terms if self.search else Terms(), filters)

    def tells(self) -> bool:
        """Return whether a match reveals what is masked in the row of a hidden job."""
        return self.search is not None and self.search.terms.tells()

    def rows(self) -> QuerySet[Job]:
        columns = {
            "handler": self.handler,
            "state": self.state,
            "event": self.event,
            "schedule": self.schedule,
            "failure_group": self.failure,
        }
        given = {name: value for name, value in columns.items() if value is not None}
        rows = (self.search.jobs if self.search else Job.objects.all()).filter(**given)
        if self.failure is not None:
            rows = rows.filter(state=State.FAILED)
        if self.flow is not None:
            rows = rows.filter(pk__in=flow_of(self.flow))
        return rows.defer("payload", "result").order_by("-pk")


def below(cursor: str | None) -> int | None:
    """Return the id that a cursor holds. Raises InvalidCursor."""
    return None if cursor is None else int(decode(cursor, int)[0])


def window(filters: Filters, below: int | None) -> tuple[QuerySet[Job], int | None]:
    """Return the rows below an id, and the id at which they were cut off; None: they were not."""
    older = {} if below is None else {"pk__lt": below}
    rows = filters.rows().filter(**older)
    if not filters.scans():
        return rows, None
    looked_at: QuerySet[Job] = Job.objects.filter(**older)
    looked_at = filters.search.within(looked_at) if filters.search else looked_at
    ids = looked_at.order_by("-pk").values_list("pk", flat=True)
    end = ids[WINDOW - 1 : WINDOW].first()
    return (rows, None) if end is None else (rows.filter(pk__gte=end), end)
