"""The pages of imports: the upload form, the history, and the progress and undo of each import."""

import json
from collections import Counter
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from tailrace.db.query import database_now
from tailrace.domains.timeline.imports import decisions, quotas
from tailrace.domains.timeline.imports.files.reading import labels_of
from tailrace.domains.timeline.imports.progress import (
    RUNNING,
    STYLES,
    actions_of,
    progress_of,
    rejection_reasons,
)
from tailrace.domains.timeline.imports.receive import receive
from tailrace.domains.timeline.imports.sample import sample_of, segments
from tailrace.domains.timeline.imports.steps.undo import points_by_day
from tailrace.domains.timeline.imports.waiting import reason_to_wait
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.models.device import MAX_NAME
from tailrace.domains.timeline.models.location_import import State
from tailrace.domains.timeline.upload_paths import HISTORIES
from tailrace.web.accounts import budget
from tailrace.web.accounts.time_zones import zone_of
from tailrace.web.pages.forms import PageForm, sentence
from tailrace.web.pages.frame import PersonRequest, for_person, show, show_with_map
from tailrace.web.pages.lists import list_page, live_address, live_response, render_live
from tailrace.web.uploads.limits import UPLOAD_COST
from tailrace.web.uploads.page import errors_in, upload_page

DECISIONS = {
    "promote": (decisions.promote_now, "The points are being added to your timeline."),
    "cancel": (
        decisions.cancel,
        "The import was cancelled. None of its points are in your timeline.",
    ),
}
ONE = "one"
"""The choice to import all points for one device."""
SHOWN_REJECTED = 20
MOST_DAYS = 60
COUNT_COST = 5
"""Number of ordinary requests that counting the points of an import counts as."""


class UploadForm(PageForm, forms.Form):
    """A file of points, and the device that recorded them."""

    file = forms.FileField(
        label="File",
        help_text="GPX, GeoJSON, Google Takeout or Timeline, OwnTracks; also in a zip or gz file.",
    )
    device = forms.CharField(
        required=False,
        max_length=MAX_NAME,
        label="Device",
        help_text="The device that recorded the points, if you have several devices.",
    )
    split = forms.ChoiceField(
        required=False,
        label="If the file has points of several devices, as Google's Records.json may",
        choices=[
            ("", "keep the devices separate"),
            (ONE, "put all points on one device"),
        ],
        widget=forms.RadioSelect,
        initial="",
    )


def _too_large(request: PersonRequest) -> HttpResponse:
    return _show(request, UploadForm(), too_large=True, status=413)


@upload_page(HISTORIES, _too_large)
def imports(request: PersonRequest) -> HttpResponse:
    """GET: show the upload form and the history. POST: import a file that a browser without
    JavaScript sends."""
    if request.method != "POST":
        return _show(request, UploadForm())
    budget.spend(request.user.pk, cost=UPLOAD_COST)
    form = UploadForm(request.POST, request.FILES)
    if form.is_valid():
        file = form.cleaned_data["file"]
        with errors_in(form):
            row = receive(
                request.user, file, file.size, file.name, form.cleaned_data["device"],
                one_device=form.cleaned_data["split"] == ONE,
            )  # fmt: skip
            return redirect("timeline:import", row.pk)
    return _show(request, form, status=422)


@require_GET
@for_person
def imports_list(request: PersonRequest) -> HttpResponse:
    return live_response(request, _list(request))


@require_GET
@for_person
def one_import(request: PersonRequest, id: int) -> HttpResponse:
    row = _own_import(request, id)
    context = {"row": row, "part": _part(request, row), "details": _details(request, row)}
    tiles = {"tiles": settings.TIMELINE_TILES_URL, "credit": settings.TIMELINE_TILES_CREDIT}
    return show_with_map(request, "tailrace/timeline/import.html", context, **tiles)


@require_GET
@for_person
def import_part(request: PersonRequest, id: int) -> HttpResponse:
    return live_response(request, _part(request, _own_import(request, id)))


@require_GET
@for_person
def import_details(request: PersonRequest, id: int) -> HttpResponse:
    return live_response(request, _details(request, _own_import(request, id)))


@require_GET
@for_person
def import_track(request: PersonRequest, id: int) -> HttpResponse:
    """Return the lines of the import's track as JSON: a sample of its points."""
    lines = segments(sample_of(_own_import(request, id)))
    return HttpResponse(json.dumps(lines, separators=(",", ":")), content_type="application/json")


@require_POST
@for_person
def decide(request: PersonRequest, id: int, action: str) -> HttpResponse:
    if action not in DECISIONS:
        raise Http404
    row = _own_import(request, id)
    call, message = DECISIONS[action]
    try:
        call(row.pk)
    except decisions.NotNow as error:
        messages.error(request, sentence(error))
    else:
        messages.success(request, message)
    return redirect("timeline:import", row.pk)


@require_http_methods(["GET", "HEAD", "POST"])
@for_person
def undo(request: PersonRequest, id: int) -> HttpResponse:
    """GET: show how many points would be removed. POST: undo the import."""
    row = _own_import(request, id)
    try:
        if request.method == "POST":
            decisions.undo(row.pk)
            messages.success(request, "The import is being undone. Its points are already hidden.")
            return redirect("timeline:import", row.pk)
        decisions.check_undo(row)
    except decisions.NotNow as error:
        messages.error(request, sentence(error))
        return redirect("timeline:import", row.pk)
    budget.spend(request.user.pk, cost=COUNT_COST)
    days = points_by_day(row, zone_of(request.user))
    context = {
        "row": row,
        "days": None if days is None else days[:MOST_DAYS],
        "day_count": len(days or ()),
        "points": row.inserted if days is None else sum(count for _, count in days),
        "more": max(0, len(days or ()) - MOST_DAYS),
    }
    return show(request, "tailrace/timeline/undo.html", context)


def _own_import(request: PersonRequest, id: int) -> Import:
    rows = Import.objects.filter(user=request.user).select_related("device", "user")
    return get_object_or_404(rows, pk=id)


def _show(
    request: PersonRequest, form: UploadForm, status: int = 200, too_large: bool = False
) -> HttpResponse:
    usage = quotas.usage_of(request.user.pk)
    context: dict[str, Any] = {
        "form": form,
        "list": _list(request),
        "too_large": too_large,
        "max_bytes": HISTORIES.files_bytes,
        "max_size": f"{settings.IMPORT_MAX_MEGABYTES:,} MB",
        "usage": usage,
    }
    return show(request, "tailrace/timeline/imports.html", context, status)


def _list(request: PersonRequest) -> str:
    imports = Import.objects.filter(user=request.user).select_related("device")
    page, older = list_page(request, imports)
    now = database_now()
    context = {"rows": [_shown(row, now) for row in page], "older": older}
    address = live_address(request, reverse("timeline:imports_list"))
    template = "tailrace/timeline/imports_list.html"
    return render_live(request, template, context, address, seconds=_seconds(*page))


def _part(request: PersonRequest, row: Import) -> str:
    """Return the HTML of the part that changes each second."""
    now = database_now()
    is_due = row.state == State.GRACE and row.promote_at is not None and row.promote_at <= now
    reason = reason_to_wait(row) if is_due else ""
    waits = sentence(reason) if reason else ""
    context = {**_shown(row, now), "actions": actions_of(row), "waits": waits}
    context["parts"] = _other_parts(row) if row.tags else []
    address = f"{reverse('timeline:import_part', args=[row.pk])}?"
    return render_live(
        request, "tailrace/timeline/import_part.html", context, address, seconds=_seconds(row)
    )


def _other_parts(row: Import) -> list[Import]:
    """Return the imports of the same file with the points of other devices."""
    first = row.part_of_id or row.pk
    parts = Import.objects.filter(Q(pk=first) | Q(part_of=first), user=row.user_id)
    return list(parts.exclude(pk=row.pk).select_related("device").order_by("pk"))


def _details(request: PersonRequest, row: Import) -> str:
    """Return the HTML of the details, which no longer change once the file is parsed."""
    parsed = row.state not in (State.RECEIVING, State.QUEUED, State.PARSING)
    tally = row.tally if parsed else {}
    context = {
        "row": row,
        "formats": labels_of(row.formats) if parsed else "",
        "reasons": Counter(tally.get("rejected", {})).most_common(),
        "first_rejected": tally.get("first_rejected", [])[:SHOWN_REJECTED],
        "skipped": tally.get("skipped_members", [])[:SHOWN_REJECTED],
        "days": row.days.get("newest", []) if parsed else [],
        "day_count": row.days.get("total", 0),
    }
    address = f"{reverse('timeline:import_details', args=[row.pk])}?"
    return render_live(
        request, "tailrace/timeline/import_details.html", context, address, seconds=_seconds(row)
    )


def _shown(row: Import, now: Any) -> dict[str, Any]:
    return {
        "row": row,
        "state": Import.State(row.state).label.lower(),
        "style": STYLES.get(State(row.state), "running"),
        "progress": progress_of(row, now),
        "why": rejection_reasons(row),
        "may_undo": decisions.may_undo(row, now),
    }


def _seconds(*rows: Import) -> int:
    """Return the reload interval in seconds for a page with these imports."""
    return 1 if any(row.state in RUNNING for row in rows) else 10
