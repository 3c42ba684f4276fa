"""Lists of large tables, newest first, paginated by id (keyset pagination), without counting.

`?p=500` is the page of rows older than row 500, `?p=-500` the page of newer rows.
"""

from types import SimpleNamespace
from typing import Any

from django.contrib.admin import ShowFacets
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from tailrace.jobs.platform.inspection.queues import stats

WINDOW = 10_000
"""Rows that a page reads at most when no index serves its filters."""

REFILL = 500
"""Rows that are read at once to fill a page after some rows were left out."""


class Uncounted(int):
    """A number of rows that is only shown as text: "Select all matching jobs". It is an int for
    the plural forms of translations."""

    def __str__(self) -> str:
        return "matching"


Page = tuple[list[Any], int | None]
"""The rows, and the id after which the next page starts (None on the last page)."""


class KeysetChangeList(ChangeList):
    """A change list in the order of ids, without counts and page numbers."""

    model_admin: Any
    older_url: str = ""
    newer_url: str = ""
    looked_at: int = 0
    is_cut: bool = False
    """Whether there are more rows than were read."""
    estimate: int | None = None

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return ["-pk"]

    def get_results(self, request: HttpRequest) -> None:
        self.request = request
        anchor = _anchor(request)
        rows, next_id = self._newer(-anchor) if anchor < 0 else self._older(anchor)
        if anchor < 0 and next_id is None:  # the newest page: show all of it
            anchor = 0
            rows, next_id = self._older(0)
        self._set_urls(rows, next_id, anchor)
        self._set_results(rows)
        self.model_admin.complete(request, rows)

    def _older(self, anchor: int) -> Page:
        below = {"pk__lt": anchor} if anchor else {}
        floor = self._end_of_window(self.root_queryset.filter(**below).order_by("-pk"))
        rows = self.queryset.filter(**below)
        return self._page(rows.filter(pk__gte=floor) if floor else rows, floor)

    def _newer(self, anchor: int) -> Page:
        ceiling = self._end_of_window(self.root_queryset.filter(pk__gt=anchor).order_by("pk"))
        queryset = self.queryset.filter(pk__gt=anchor).order_by("pk")
        rows, next_id = self._page(
            queryset.filter(pk__lte=ceiling) if ceiling else queryset, ceiling
        )
        return rows[::-1], next_id

    def _page(self, queryset: QuerySet[Any], end: int | None) -> Page:
        rows, rest = list[Any](), queryset
        for size in (self.list_per_page + 1, *[REFILL] * (WINDOW // REFILL)):
            batch = list(rest[:size])
            rows += self.model_admin.listed(self.request, batch)
            if len(rows) > self.list_per_page:
                return rows[: self.list_per_page], rows[self.list_per_page - 1].pk
            if len(batch) < size:
                return rows, end
            after = "pk__gt" if queryset.query.order_by == ("pk",) else "pk__lt"
            rest = queryset.filter(**{after: batch[-1].pk})
        return rows, end or batch[-1].pk

    def _end_of_window(self, queryset: QuerySet[Any]) -> int | None:
        """Return the last id of the window, or None if indexes serve the filters."""
        if not self.model_admin.scans(self.params):
            return None
        self.looked_at = WINDOW
        rows = self.model_admin.within(self.request, queryset)
        end: int | None = rows.values_list("pk", flat=True)[WINDOW - 1 : WINDOW].first()
        self.is_cut = end is not None
        return end

    def _set_urls(self, rows: list[Any], next_id: int | None, anchor: int) -> None:
        first, last = (rows[0].pk, rows[-1].pk) if rows else (anchor - 1, 1 - anchor)
        older = last if anchor < 0 else next_id
        newer = next_id if anchor < 0 else first if anchor else None
        self.older_url = self.get_query_string({PAGE_VAR: older}) if older else ""
        self.newer_url = self.get_query_string({PAGE_VAR: -newer}) if newer else ""
        self.newest_url = self.get_query_string() if anchor else ""

    def _set_results(self, rows: list[Any]) -> None:
        """Set what Django's change list computes from counts."""
        more = self.older_url or self.newer_url
        self.result_list = rows
        count = Uncounted(WINDOW) if more else len(rows)
        self.result_count = self.full_result_count = count
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = True
        template = "tailrace/jobs/admin/lists/pager.html"
        self.paginator = SimpleNamespace(template_name=template, per_page=self.list_per_page)
        if not self.params:
            self.estimate = stats.estimate(self.model._meta.db_table)


def _anchor(request: HttpRequest) -> int:
    try:
        return int(request.GET.get(PAGE_VAR, 0))
    except ValueError:
        return 0


class KeysetAdmin:
    """Mix into a ModelAdmin to list its rows by a KeysetChangeList."""

    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # they would count the table once per filter
    sortable_by = ()
    list_per_page = 25
    narrow_by = ""
    """Advice for users on how to narrow a list that no index serves."""

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        return KeysetChangeList

    def scans(self, params: dict[str, str]) -> bool:
        """Return whether no index serves these filters, so that a page reads a window of rows."""
        return False

    def within(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows in the time range of a search, to which the window is limited."""
        return queryset

    def listed(self, request: HttpRequest, rows: list[Any]) -> list[Any]:
        """Return the rows that the user may find by this search and these filters."""
        return rows

    def complete(self, request: HttpRequest, rows: list[Any]) -> None:
        """Add data that the columns need to the rows of a page, in a few statements."""


class ReadOnlyAdmin:
    """Mix into a ModelAdmin to forbid adding, changing and deleting rows."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission
