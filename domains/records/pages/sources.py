"""The pages of sources: the list, each source with its state, and the form with its trial."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import (
    require_GET,
    require_http_methods,
    require_POST,
    require_safe,
)

from tailrace.db.pagination import InvalidCursor, decode, encode
from tailrace.domains.records.models import Source
from tailrace.domains.records.pages.source_forms import SourceForm
from tailrace.domains.records.sources.requests import PULL, NotActive
from tailrace.domains.records.sources.upkeep import changes, trial
from tailrace.domains.records.sources.upkeep.changes import ADD, CHANGE, VIEW
from tailrace.domains.records.sources.upkeep.status import statuses
from tailrace.jobs.models import Job
from tailrace.web.accounts import budget
from tailrace.web.pages.forms import sentence
from tailrace.web.pages.frame import PersonRequest, for_person, show
from tailrace.web.pages.lists import live_response, render_live

PAGE_SIZE = 50
SECONDS, SECONDS_WHEN_DONE = 2, 30
"""Seconds between updates of the page, while the source has a job and otherwise."""
ACTIONS: dict[str, tuple[Callable[[int, User], object], str]] = {
    "pull": (changes.pull_now, "is being read"),
    "restart": (changes.start_over, "is being read from the beginning"),
    "pause": (partial(changes.set_active, is_active=False), "is paused"),
    "resume": (partial(changes.set_active, is_active=True), "is active again"),
}


@require_safe
@for_person
def sources(request: PersonRequest) -> HttpResponse:
    _check(request, VIEW)
    rows = Source.objects.order_by("name")
    if after := request.GET.get("after", ""):
        try:
            rows = rows.filter(name__gt=decode(after, str)[0].replace("\0", ""))
        except InvalidCursor:
            raise Http404 from None
    page = list(rows[: PAGE_SIZE + 1])
    context = {
        "rows": statuses(page[:PAGE_SIZE]),
        "may_add": request.user.has_perm(ADD),
        "next": encode(page[PAGE_SIZE - 1].name) if len(page) > PAGE_SIZE else "",
    }
    return show(request, "tailrace/records/sources.html", context)


@require_safe
@for_person
def source(request: PersonRequest, id: int) -> HttpResponse:
    """Show the state of a source, and buttons for actions."""
    row = _row(request, id)
    return show(
        request, "tailrace/records/source.html", {"source": row, "state": _state(request, row)}
    )


@require_GET
@for_person
def source_now(request: PersonRequest, id: int) -> HttpResponse:
    return live_response(request, _state(request, _row(request, id)))


@require_POST
@for_person
def change_source(request: PersonRequest, id: int, action: str) -> HttpResponse:
    """Pull a source, pause or resume it, or read it from the beginning."""
    _check(request, CHANGE)
    row = _row(request, id)
    if action not in ACTIONS:
        raise Http404
    change, message = ACTIONS[action]
    try:
        change(row.pk, request.user)
    except NotActive as error:
        messages.error(request, f"Failed: {error}.")
    else:
        messages.success(request, f"{row} {message}.")
    return redirect("records:source", row.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def new_source(request: PersonRequest) -> HttpResponse:
    """GET: show the form. POST: add the source, or only try it if the button `try` was pressed."""
    _check(request, ADD)
    return _form(request, None)


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def edit_source(request: PersonRequest, id: int) -> HttpResponse:
    """Like `new_source`, for an existing source."""
    _check(request, CHANGE)
    return _form(request, _row(request, id))


def _form(request: PersonRequest, row: Source | None) -> HttpResponse:
    form = SourceForm(request.POST or None, source=row)
    context: dict[str, Any] = {"form": form, "source": row}
    status = 200
    if request.method == "POST" and not form.is_valid():
        status = 422
    elif request.method == "POST":
        try:
            if "try" not in request.POST:
                return redirect("records:source", _save(request, form).pk)
            budget.spend(request.user.pk, cost=trial.COST)
            name = row.name if row else form.cleaned_data["name"]
            context["trial"] = trial.try_source(name, **form.values())
        except changes.InvalidSource as error:
            for field, problem in error.problems.items():
                form.add_error(field if field in form.fields else None, problem)
            status = 422
        except (changes.TooManySources, trial.TooManyTrials) as error:
            form.add_error(None, sentence(error))
            status = 409 if isinstance(error, changes.TooManySources) else 503
    return show(request, "tailrace/records/source_form.html", context, status)


def _save(request: PersonRequest, form: SourceForm) -> Source:
    if form.source is None:
        name = form.cleaned_data["name"]
        row = changes.create_source(request.user, name=name, **form.values())
        messages.success(
            request, f"{row} was added and will be read at its next time. To read it now, pull it."
        )
    else:
        row = changes.change_source(form.source.pk, request.user, **form.values())
        messages.success(request, f"{row} was saved.")
    return row


def _state(request: PersonRequest, row: Source) -> str:
    jobs = Job.objects.filter(handler=PULL, lane=str(row.pk))
    job = jobs.running().first() or jobs.pending().order_by("due_at").first()
    [status] = statuses([row])
    may_change = request.user.has_perm(CHANGE)
    context = {"status": status, "job": job, "source": row, "may_change": may_change}
    address = f"{reverse('records:source_now', args=[row.pk])}?"
    seconds = SECONDS if job else SECONDS_WHEN_DONE
    return render_live(
        request, "tailrace/records/source_state.html", context, address, seconds=seconds
    )


def _row(request: PersonRequest, id: int) -> Source:
    _check(request, VIEW)
    return get_object_or_404(Source, pk=id)


def _check(request: PersonRequest, permission: str) -> None:
    if not request.user.has_perm(permission):
        raise PermissionDenied
