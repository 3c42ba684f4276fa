"""The confirmation page of an action on several rows of a list."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from tailrace.jobs.platform.admin import theme

MOST, SHOWN = 10_000, 20
"""The maximum number of rows of one action, and of rows that the page lists."""
CONFIRMED = "confirmed"
"""The form field with the number of rows that the page showed."""

_OMITTED_FIELDS = frozenset({"csrfmiddlewaretoken", CONFIRMED})
_LIST_PARAMETERS = frozenset({"p", "after", "before", "o", "e"})
"""Query parameters of a list that are not filters."""


def counted_first(action: Callable[..., Any], title: str) -> Callable[..., Any]:
    """Return an action of an admin list that shows its rows and their number before it calls
    `action`, unless it has one row only, or the user has confirmed this number.

    More than MOST rows are refused. Actions with a preview of their own are called directly for all
    matching rows.
    """

    @wraps(action)
    def confirm_or_apply(model_admin: Any, request: HttpRequest, rows: QuerySet[Any]) -> Any:
        if is_across(request) and model_admin.previews_all:
            return action(model_admin, request, rows)
        count = rows.order_by()[: MOST + 1].count()
        if count > MOST:
            rows_text = f"more than {MOST:,} {model_admin.opts.verbose_name_plural}"
            messages.error(request, f"{title}: {rows_text} are selected; filter the list first")
            return None
        if count < 2 or request.POST.get(CONFIRMED) == str(count):
            return action(model_admin, request, rows)
        return _show(model_admin, request, rows, title, count)

    return confirm_or_apply


def is_across(request: HttpRequest) -> bool:
    """Return whether the action is for all matching rows, not only for the selected ones."""
    return request.POST.get("select_across") == "1"


def filter_in_words(request: HttpRequest) -> str:
    """Return the filters of the list, e.g. `search = a, state = failed`, if the action is for all
    matching rows; an empty string if it is for selected rows."""
    if not is_across(request):
        return ""
    return in_words({k: v for k, v in request.GET.items() if k not in _LIST_PARAMETERS}) or "all"


def in_words(filters: Mapping[str, Any]) -> str:
    """Return `search = a, state = failed` for the filters of a list."""
    words = (f"{'search' if k == 'q' else k} = {v}" for k, v in sorted(filters.items()))
    return ", ".join(words)[:500]


def _show(
    model_admin: Any, request: HttpRequest, rows: QuerySet[Any], title: str, count: int
) -> HttpResponse:
    opts = model_admin.opts
    number = f"{count:,}"
    values = ((k, v) for k in request.POST for v in request.POST.getlist(k))
    context = {
        "title": f"{title}: {number} {opts.verbose_name_plural}",
        "opts": opts,
        "action_title": title,
        "number": number,
        "noun": opts.verbose_name_plural,
        "rows": list(rows[:SHOWN]),
        "more": max(count - SHOWN, 0),
        "is_across": is_across(request),
        "filter": filter_in_words(request),
        "fields": [(k, v) for k, v in values if k not in _OMITTED_FIELDS],
        "confirmed": (CONFIRMED, count),
        "back": request.get_full_path(),
    }
    site = model_admin.admin_site
    return theme.page(site, request, "tailrace/jobs/admin/lists/several.html", context)
