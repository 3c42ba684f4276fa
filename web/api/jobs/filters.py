"""Find jobs by filters, newest first, with a bounded number of rows read."""

from dataclasses import dataclass

from django.db.models import QuerySet

from tailrace.db.pagination import decode
from tailrace.jobs.models import Job
from tailrace.jobs.models.states import State
from tailrace.jobs.platform.inspection.details.flow import flow_of
from tailrace.jobs.platform.inspection.search.find import SearchResult, scans
from tailrace.jobs.platform.inspection.search.terms import Terms

WINDOW = 10_000
"""Maximum number of jobs that a page reads if no index serves its filters."""


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a list of jobs; None: any value."""

    handler: str | None = None
    state: str | None = None
    event: int | None = None
    schedule: int | None = None
    flow: int | None = None
    """The id of a job of the flow."""
    failure: int | None = None
    search: SearchResult | None = None
    """The result of a text search."""

    def scans(self) -> bool:
        """Return whether no index serves the filters, so that rows are scanned."""
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
        """Return whether a match would reveal masked fields of a hidden job."""
        return self.search is not None and self.search.terms.tells()

    def rows(self) -> QuerySet[Job]:
        """Return the matching jobs, newest first, without payload and result."""
        columns = {
            "handler": self.handler,
            "state": self.state,
            "event": self.event,
            "schedule": self.schedule,
            "failure_group": self.failure,
        }
        conditions = {name: value for name, value in columns.items() if value is not None}
        rows = (self.search.jobs if self.search else Job.objects.all()).filter(**conditions)
        if self.failure is not None:
            rows = rows.filter(state=State.FAILED)
        if self.flow is not None:
            rows = rows.filter(pk__in=flow_of(self.flow))
        return rows.defer("payload", "result").order_by("-pk")


def below(cursor: str | None) -> int | None:
    """Return the id in a cursor. Raises InvalidCursor."""
    return None if cursor is None else int(decode(cursor, int)[0])


def window(filters: Filters, below: int | None) -> tuple[QuerySet[Job], int | None]:
    """Return the matching jobs with ids below `below`, and the id at which the scan ended.

    The id is None if all jobs were scanned, or an index serves the filters.
    """
    older = {} if below is None else {"pk__lt": below}
    rows = filters.rows().filter(**older)
    if not filters.scans():
        return rows, None
    scanned: QuerySet[Job] = Job.objects.filter(**older)
    scanned = filters.search.within(scanned) if filters.search else scanned
    ids = scanned.order_by("-pk").values_list("pk", flat=True)
    end = ids[WINDOW - 1 : WINDOW].first()
    return (rows, None) if end is None else (rows.filter(pk__gte=end), end)
