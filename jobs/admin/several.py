"""An action on several rows of a list: the page that says how many these are, before it is done."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

MOST, SHOWN = 10_000, 20
"""Rows of one action, and those that the page names."""
CONFIRMED = "confirmed"
"""The field of the form that has the number which the page showed."""

_NOT_SENT_AGAIN = frozenset({"csrfmiddlewaretoken", CONFIRMED})
_OF_THE_LIST = frozenset({"p", "after", "before", "o", "e"})
"""Parameters of a list's address that choose no rows."""


def counted_first(action: Callable[..., Any], title: str) -> Callable[..., Any]:
    """Return the action of an admin list, which shows what it would do, and with how many rows,
    unless the form says that this number was shown, or it is about one row. More than MOST rows are
    refused; actions with a preview of their own have their own bound."""

    @wraps(action)
    def count_or_do(model_admin: Any, request: HttpRequest, rows: QuerySet[Any]) -> Any:
        if is_across(request) and model_admin.previews_all:
            return action(model_admin, request, rows)
        count = rows.order_by()[: MOST + 1].count()
        if count > MOST:
            many = f"more than {MOST:,} {model_admin.opts.verbose_name_plural}"
            messages.error(request, f"{title}: these are {many}; filter the list for fewer")
            return None
        if count < 2 or request.POST.get(CONFIRMED) == str(count):
            return action(model_admin, request, rows)
        return _show(model_admin, request, rows, title, count)

    return count_or_do


def is_across(request: HttpRequest) -> bool:
    """Whether the action is for all rows that match, and not for those that were ticked."""
    return request.POST.get("select_across") == "1"


def filter_in_words(request: HttpRequest) -> str:
    """Return what the list was filtered by, e.g. `search = a, state = failed`, if the action is for
    all that match; an empty string if rows were ticked."""
    if not is_across(request):
        return ""
    chosen = sorted(request.GET.items())
    words = (f"{'search' if k == 'q' else k} = {v}" for k, v in chosen if k not in _OF_THE_LIST)
    return ", ".join(words)[:500] or "all"


def _show(
    model_admin: Any, request: HttpRequest, rows: QuerySet[Any], title: str, count: int
) -> HttpResponse:
    opts = model_admin.opts
    number = f"{count:,}"
    values = ((k, v) for k in request.POST for v in request.POST.getlist(k))
    context = {
        **admin.site.each_context(request),
        "title": f"{title}: {number} {opts.verbose_name_plural}",
        "opts": opts,
        "action_title": title,
        "number": number,
        "noun": opts.verbose_name_plural,
        "rows": list(rows[:SHOWN]),
        "more": max(count - SHOWN, 0),
        "is_across": is_across(request),
        "filter": filter_in_words(request),
        "fields": [(k, v) for k, v in values if k not in _NOT_SENT_AGAIN],
        "confirmed": (CONFIRMED, count),
        "back": request.get_full_path(),
    }
    return render(request, "tailrace/jobs/admin/several.html", context)
