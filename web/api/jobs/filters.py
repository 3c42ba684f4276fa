"""Find jobs by filters, newest first, with a bounded number of rows read."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from django.db.models import QuerySet
from pydantic import BaseModel

from tailrace.db.pagination import decode, encode
from tailrace.jobs.models import Job
from tailrace.jobs.platform.inspection.details.connected import connected_with
from tailrace.jobs.platform.inspection.search.find import SearchResult, scans
from tailrace.jobs.platform.inspection.search.terms import Terms
from tailrace.jobs.runtime.states import State

WINDOW = 10_000
"""Maximum number of jobs that a page reads if no index serves its filters."""


NAMES = {"handler", "state", "event", "schedule", "flow", "connected_with", "failure"}


@dataclass(frozen=True, slots=True)
class Filters:
    values: Mapping[str, Any]
    """The values to filter by."""
    search: SearchResult | None = None

    @classmethod
    def of(cls, params: BaseModel, search: SearchResult | None = None) -> Self:
        return cls(params.model_dump(include=NAMES, exclude_none=True), search)

    def scans(self) -> bool:
        """Return whether no index serves the filters, so that rows are scanned."""
        return scans(self.search.terms if self.search else Terms(), self.values)

    def reveals_hidden(self) -> bool:
        """Return whether a match would reveal masked fields of a hidden job."""
        return self.search is not None and self.search.terms.reveals_hidden()

    def rows(self) -> QuerySet[Job]:
        """Return the matching jobs, newest first, without payload and result."""
        rows = self.search.jobs if self.search else Job.objects.all()
        for name, value in self.values.items():
            match name:
                case "failure":
                    rows = rows.filter(failure_group=value, state=State.FAILED)
                case "flow":
                    rows = rows.filter(flow_id=value)
                case "connected_with":
                    rows = rows.filter(pk__in=connected_with(value))
                case _:
                    rows = rows.filter(**{name: value})
        return rows.defer("payload", "result").order_by("-pk")


def below(cursor: str | None) -> int | None:
    """Return the id in a cursor. Raises InvalidCursor."""
    return None if cursor is None else int(decode(cursor, int)[0])


def cursor_of(end: int | None) -> str | None:
    """Return the cursor of the jobs with ids below `end`; None if `end` is None."""
    return None if end is None else encode(end)


def window(filters: Filters, below: int | None) -> tuple[QuerySet[Job], int | None]:
    """Return the matching jobs with ids below `below`, and the id at which the scan ended: None if
    all jobs were scanned, or an index serves the filters."""
    older = {} if below is None else {"pk__lt": below}
    rows = filters.rows().filter(**older)
    if not filters.scans():
        return rows, None
    scanned: QuerySet[Job] = Job.objects.filter(**older)
    scanned = filters.search.within(scanned) if filters.search else scanned
    ids = scanned.order_by("-pk").values_list("pk", flat=True)
    end = ids[WINDOW - 1 : WINDOW].first()
    return (rows, None) if end is None else (rows.filter(pk__gte=end), end)
