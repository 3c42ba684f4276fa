"""paging: lists of big tables, newest first, page by page along the id. Nothing is counted.

`?p=500` is the page of what is older than row 500, `?p=-500` of what is newer. Filters that no
index serves look at WINDOW rows per page and then offer to go on, so a page's cost is bounded
whatever is asked for.
"""

from typing import Any

from django.contrib.admin.views.main import PAGE_VAR
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from unfold.views import ChangeList

from jobs import numbers

WINDOW = 10_000
"""Rows that a page looks at when its filter has no index."""

Page = tuple[list[Any], int | None]
"""The rows found, and the id to go on from in the same direction, or None at the end."""


class Pager:
    """What unfold's templates ask a paginator for."""

    template_name = "jobs/admin/pager.html"

    def __init__(self, per_page: int) -> None:
        self.per_page = per_page


class KeysetChangeList(ChangeList):
    """A change list in the order of ids, without a count, a page number or a total."""

    older_url: str = ""
    newer_url: str = ""
    looked_at: int = 0
    estimate: int | None = None

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str]:
        return ["-pk"]

    def get_results(self, request: HttpRequest) -> None:
        anchor = _anchor(request)
        rows, beyond = self._newer(-anchor) if anchor < 0 else self._older(anchor)
        if anchor < 0 and beyond is None:  # the newest page: show it whole
            anchor = 0
            rows, beyond = self._older(0)
        self._link(rows, beyond, anchor)
        self._stand_in_for_counts(rows)
        self.model_admin.complete(rows)

    def _older(self, anchor: int) -> Page:
        below = {"pk__lt": anchor} if anchor else {}
        floor = self._edge(self.root_queryset.filter(**below).order_by("-pk"))
        rows = self.queryset.filter(**below)
        return self._take(rows.filter(pk__gte=floor) if floor else rows, floor)

    def _newer(self, anchor: int) -> Page:
        ceiling = self._edge(self.root_queryset.filter(pk__gt=anchor).order_by("pk"))
        rows = self.queryset.filter(pk__gt=anchor).order_by("pk")
        found, beyond = self._take(rows.filter(pk__lte=ceiling) if ceiling else rows, ceiling)
        return found[::-1], beyond

    def _take(self, rows: QuerySet[Any], edge: int | None) -> Page:
        found = list(rows[: self.list_per_page + 1])
        if len(found) > self.list_per_page:
            return found[:-1], found[-2].pk
        return found, edge

    def _edge(self, rows: QuerySet[Any]) -> int | None:
        """Return the last id of the window, or None where the filters are served by indexes."""
        if not self.model_admin.scans(self.params):
            return None
        self.looked_at = WINDOW
        ids = rows.values_list("pk", flat=True)[WINDOW - 1 : WINDOW]
        return next(iter(ids), None)

    def _link(self, rows: list[Any], beyond: int | None, anchor: int) -> None:
        first, last = (rows[0].pk, rows[-1].pk) if rows else (anchor - 1, 1 - anchor)
        older = last if anchor < 0 else beyond
        newer = beyond if anchor < 0 else first if anchor else None
        self.older_url = self.get_query_string({PAGE_VAR: older}) if older else ""
        self.newer_url = self.get_query_string({PAGE_VAR: -newer}) if newer else ""
        self.newest_url = self.get_query_string() if anchor else ""

    def _stand_in_for_counts(self, rows: list[Any]) -> None:
        more = self.older_url or self.newer_url
        self.result_list = rows
        # Only words are made of it: "Select all matching jobs".
        self.result_count = self.full_result_count = "matching" if more else len(rows)
        self.show_full_result_count = self.can_show_all = self.multi_page = False
        self.show_admin_actions = True
        self.paginator = Pager(self.list_per_page)
        if not self.params:
            self.estimate = numbers.estimate(self.model._meta.db_table)


def _anchor(request: HttpRequest) -> int:
    try:
        return int(request.GET.get(PAGE_VAR, 0))
    except ValueError:
        return 0


class KeysetAdmin:
    """Mix into a ModelAdmin: its list is a KeysetChangeList."""

    show_full_result_count = False
    sortable_by = ()
    list_per_page = 50

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[KeysetChangeList]:
        return KeysetChangeList

    def scans(self, params: dict[str, str]) -> bool:
        """Say whether no index serves these filters, so that a page looks at a window of rows."""
        return False

    def complete(self, rows: list[Any]) -> None:
        """Add to the rows of a page what its columns need, in few statements."""


class ReadOnlyAdmin:
    """Mix into a ModelAdmin: nobody adds, changes or deletes rows by hand."""

    def has_add_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
