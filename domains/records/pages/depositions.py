"""The pages of depositions: the list, the form, and each deposition with its events and jobs."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import FileResponse, Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST, require_safe

from tailrace.domains.records.depositions import decisions
from tailrace.domains.records.depositions.events import event_id
from tailrace.domains.records.depositions.receive import receive
from tailrace.domains.records.depositions.storage import files
from tailrace.domains.records.event_types import SOURCE, DepositionSubmitted
from tailrace.domains.records.models import Deposition, Record
from tailrace.domains.records.models.visibility import visible_depositions, visible_files
from tailrace.domains.records.pages.forms import DepositionForm, ReasonForm
from tailrace.domains.records.upload_paths import DEPOSITS
from tailrace.events.models import Event
from tailrace.jobs.platform.inspection.details.chain import Chain, chain_of
from tailrace.web.accounts import budget
from tailrace.web.pages.frame import PersonRequest, for_person, show
from tailrace.web.pages.lists import list_page, live_response, render_live
from tailrace.web.uploads.download import download_response
from tailrace.web.uploads.limits import UPLOAD_COST
from tailrace.web.uploads.page import errors_in, upload_page

SECONDS, SECONDS_WHEN_DONE = 2, 30
"""Seconds between updates of the page, while jobs of the chain are unfinished and afterwards."""
SHOWN_WAITING = 20
DECIDED = {"approve": "approved", "reject": "rejected"}


@require_safe
@for_person
def depositions(request: PersonRequest) -> HttpResponse:
    """List the person's depositions, and for curators the depositions that need a decision."""
    rows = Deposition.objects.filter(submitted_by=request.user)
    page, older = list_page(request, rows)
    waiting = Deposition.objects.filter(state=Deposition.State.VALID).order_by("-pk")
    is_curator = request.user.has_perm(decisions.CURATE)
    context = {
        "rows": page,
        "older": older,
        "is_curator": is_curator,
        "waiting": waiting[:SHOWN_WAITING] if is_curator else [],
    }
    return show(request, "tailrace/records/depositions.html", context)


def _too_large(request: PersonRequest) -> HttpResponse:
    return _show_form(request, DepositionForm(), None, too_large=True, status=413)


@upload_page(DEPOSITS, _too_large)
def deposit(request: PersonRequest) -> HttpResponse:
    """GET: show the form, filled with the metadata of the previous version `of` if it is given.
    POST: submit the deposition."""
    previous = _previous_version(request)
    if request.method != "POST":
        form = DepositionForm.of(previous) if previous else DepositionForm()
        return _show_form(request, form, previous)
    budget.spend(request.user.pk, cost=UPLOAD_COST)
    form = DepositionForm(request.POST, request.FILES)
    if form.is_valid():
        identifier = previous.identifier if previous else ""
        with errors_in(form, files="file"):
            result = receive(
                request.user, form.metadata(), form.sent_files(), identifier=identifier
            )
            return redirect("records:deposition", result.deposition.pk)
    return _show_form(request, form, previous, status=422)


@require_safe
@for_person
def deposition(request: PersonRequest, id: int) -> HttpResponse:
    """Show a deposition: its state, its problems, and the chain of its events and jobs."""
    row = _visible(request, id)
    context = {"row": row, "chain": _chain(request, row), "files": row.files.order_by("name")}
    return show(request, "tailrace/records/deposition.html", context)


@require_GET
@for_person
def deposition_chain(request: PersonRequest, id: int) -> HttpResponse:
    return live_response(request, _chain(request, _visible(request, id)))


@require_safe
@for_person
def deposition_file(request: PersonRequest, id: int, file: int) -> FileResponse:
    row = get_object_or_404(visible_files(request.user), deposition=id, pk=file)
    try:
        return download_response(files.open(row.key), row.name)
    except FileNotFoundError:
        raise Http404 from None


@require_POST
@for_person
def decide(request: PersonRequest, id: int, action: str) -> HttpResponse:
    if action not in DECIDED or not request.user.has_perm(decisions.CURATE):
        raise Http404
    row = get_object_or_404(Deposition, pk=id)
    try:
        if action == "approve":
            decisions.approve(row.pk, request.user)
        else:
            form = ReasonForm(request.POST)
            reason = form.cleaned_data["reason"] if form.is_valid() else ""
            decisions.reject(row.pk, request.user, reason)
    except decisions.DecisionRefused as error:
        messages.error(request, f"Failed: {error}.")
    else:
        messages.success(request, f"Deposition {row.pk} is {DECIDED[action]}.")
    return redirect("records:deposition", row.pk)


def _visible(request: PersonRequest, id: int) -> Deposition:
    rows = visible_depositions(request.user).select_related("source", "submitted_by")
    return get_object_or_404(rows, pk=id)


def _previous_version(request: PersonRequest) -> Deposition | None:
    """Return the person's deposition with the id `of`, whose new version is being submitted."""
    id_text = request.GET.get("of", "")
    if not id_text:
        return None
    if not (id_text.isascii() and id_text.isdigit() and len(id_text) < 19):
        raise Http404
    rows = Deposition.objects.filter(submitted_by=request.user, source=None, is_deleted=False)
    return get_object_or_404(rows, pk=int(id_text))


def _chain(request: PersonRequest, row: Deposition) -> str:
    chain = _chain_of(row, request.user)
    record = Record.objects.filter(identifier=row.identifier).first()
    context: dict[str, Any] = {
        "row": row,
        "chain": chain,
        "record": record,
        "shows_jobs": request.user.has_perm("tailrace_jobs.view_job"),
        "shows_errors": request.user.has_perm("tailrace_jobs.view_job_payload"),
        "is_mine": row.submitted_by_id == request.user.pk and row.source_id is None,
        "may_decide": row.state == "valid" and request.user.has_perm(decisions.CURATE),
        "reason_form": ReasonForm(),
    }
    address = f"{reverse('records:deposition_chain', args=[row.pk])}?"
    seconds = SECONDS if chain.is_under_way() else SECONDS_WHEN_DONE
    return render_live(request, "tailrace/records/chain.html", context, address, seconds=seconds)


def _chain_of(row: Deposition, user: User) -> Chain:
    """Return the chain of the deposition's events and jobs. Only operators see jobs of other apps,
    such as notifications of subscribers."""
    events = Event.objects.filter(source=SOURCE, source_id=event_id(DepositionSubmitted, row.pk))
    first = events.values_list("pk", flat=True).first()
    if first is None:
        return Chain([])
    return chain_of(
        first, user, handlers="" if user.has_perm("tailrace_jobs.view_job") else "records."
    )


def _show_form(
    request: PersonRequest,
    form: DepositionForm,
    previous: Deposition | None,
    *,
    too_large: bool = False,
    status: int = 200,
) -> HttpResponse:
    context = {
        "form": form,
        "previous": previous,
        "too_large": too_large,
        "max_megabytes": settings.RECORDS_MAX_MEGABYTES,
    }
    return show(request, "tailrace/records/deposit.html", context, status)
