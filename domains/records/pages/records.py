"""The page of a published record."""

from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from tailrace.domains.records.depositions import decisions
from tailrace.domains.records.models import Record
from tailrace.domains.records.models.visibility import (
    visible_depositions,
    visible_files,
    visible_records,
)
from tailrace.domains.records.pages.forms import ReasonForm
from tailrace.web.pages.frame import PersonRequest, for_person, show

MOST_CREATORS = 10
"""Maximum number of creators in a citation."""


@require_safe
@for_person
def record(request: PersonRequest, id: int) -> HttpResponse:
    row = _visible(request, id)
    deposition = visible_depositions(request.user).filter(pk=row.deposition_id or 0).first()
    context = {
        "row": row,
        "deposition": deposition,
        "files": visible_files(request.user).filter(deposition=row.deposition_id).order_by("name"),
        "may_withdraw": decisions.may_withdraw(request.user, row) and not row.is_deleted,
        "form": ReasonForm(),
        "address": (address := _address(row)),
        "citation": citation(row, address),
    }
    return show(request, "tailrace/records/record.html", context)


def citation(row: Record, address: str) -> str:
    """Return how to cite the record: creators, year, title, version and address."""
    creators = "; ".join(row.creators[:MOST_CREATORS])
    if len(row.creators) > MOST_CREATORS:
        creators += " et al."
    title = (row.title or row.identifier).rstrip(".")
    return f"{creators} ({row.datestamp:%Y}). {title}. Version {row.version}. {address}".strip()


@require_POST
@for_person
def withdraw(request: PersonRequest, id: int) -> HttpResponse:
    """Withdraw the record, for its owner or a curator."""
    row = _visible(request, id)
    if not decisions.may_withdraw(request.user, row):
        raise Http404
    form = ReasonForm(request.POST)
    try:
        reason = form.cleaned_data["reason"] if form.is_valid() else ""
        deposition = decisions.withdraw(row, request.user, reason)
    except decisions.DecisionRefused as error:
        messages.error(request, f"Not withdrawn: {error}.")
        return redirect("records:record", row.pk)
    messages.success(request, "The record is being withdrawn.")
    if visible_depositions(request.user).filter(pk=deposition.pk).exists():
        return redirect("records:deposition", deposition.pk)
    return redirect("records:record", row.pk)


def _address(row: Record) -> str:
    """Return the address of the record, which all its versions have."""
    return f"{settings.PUBLIC_URL}{reverse('records:record', args=[row.pk])}"


def _visible(request: PersonRequest, id: int) -> Record:
    return get_object_or_404(visible_records(request.user).select_related("owner"), pk=id)
