"""The overview page at `/`. Its panels are updated every few seconds."""

from typing import Any

import structlog
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.text import slugify
from django.views.decorators.http import require_GET, require_POST

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.limits import reason
from tailrace.db.locks import Blocked
from tailrace.db.row_ids import row_id
from tailrace.environment.conf import on_platform
from tailrace.events.models import Event
from tailrace.jobs.models.queue_period import ALL_QUEUES
from tailrace.jobs.operations import acknowledge
from tailrace.jobs.platform.inspection import verdict
from tailrace.jobs.platform.inspection.display.formatting import count
from tailrace.jobs.platform.inspection.queues.marks import marks
from tailrace.jobs.platform.inspection.queues.queue_history import WINDOWS, history
from tailrace.jobs.platform.inspection.visibility import user_of
from tailrace.jobs.platform.pages.access import for_staff
from tailrace.jobs.platform.pages.charts import counts_chart, due_chart
from tailrace.jobs.platform.pages.figures import figures
from tailrace.jobs.platform.pages.panel import Panel, Shared, all_panels
from tailrace.jobs.platform.pages.verdict import may_mend, shown_verdict

log = structlog.get_logger(__name__)

MAX_SUBJECT = 2000


@require_GET
def overview(request: HttpRequest) -> HttpResponse:
    """Show the overview to staff; the platform redirects other users to their own pages."""
    if on_platform() and request.user.is_authenticated and not request.user.is_staff:
        return redirect(settings.HOME_OF_USERS)
    return for_staff(_render)(request, "tailrace/jobs/overview.html")


@require_GET
@for_staff
def poll(request: HttpRequest) -> HttpResponse:
    """Return only the panels, for htmx."""
    return _render(request, "tailrace/jobs/cards.html")


@require_POST
@for_staff
def acknowledge_event(request: HttpRequest, id: int) -> HttpResponse:
    try:
        acknowledge.acknowledge(request.user, id)
    except Blocked as error:
        messages.error(request, f"Event {id} could not be acknowledged: {error}.")
        if "HX-Request" in request.headers:
            return HttpResponse(headers={"HX-Refresh": "true"})  # the page shows the message
    if "HX-Request" in request.headers:
        return _render(request, "tailrace/jobs/cards.html")
    return redirect("tailrace:overview")


@require_POST
@for_staff
def acknowledge_events(request: HttpRequest) -> HttpResponse:
    """Acknowledge all flagged events up to the one in the form field `up_to`, which is the newest
    that the page showed."""
    up_to = row_id(request.POST.get("up_to", ""))
    if not request.user.has_perm(acknowledge.PERMISSION):
        raise PermissionDenied(f"you need the permission {acknowledge.PERMISSION}")
    if up_to is None:
        return HttpResponseBadRequest("up_to: must be the id of an event")
    events = Event.objects.filter(pk__lte=up_to)
    number = acknowledge.acknowledge_all(request.user, events, f"all up to event {up_to}")
    messages.success(request, f"{count(number, 'event')} acknowledged.")
    return redirect("tailrace:overview")


@require_POST
@for_staff
def mend(request: HttpRequest, code: str) -> HttpResponse:
    """Fix a cause by its button; the form field `subject` is the cause's subject. The form of a
    button that asks first has the field `confirmed`, too."""
    check = verdict.check_of(code)
    if check is None or check.button is None:
        raise Http404("there is no button for causes with this code")
    if not may_mend(request, check):
        raise PermissionDenied(f"you need the permission {check.button.permission}")
    subject = request.POST.get("subject", "")
    if not subject or len(subject) > MAX_SUBJECT or "\0" in subject:
        return HttpResponseBadRequest("subject: must be the subject of a cause")
    if check.button.confirm and request.POST.get("confirmed") != "yes":
        return HttpResponseBadRequest("confirmed: must be yes, because this cannot be undone")
    try:
        messages.success(request, check.mend(user_of(request), subject))
    except Blocked as error:
        messages.error(request, f"Nothing was changed: {error}.")
    return redirect("tailrace:overview")


def _render(request: HttpRequest, template: str) -> HttpResponse:
    shared = Shared()
    cards = [_card(request, panel, shared) for panel in all_panels()]
    cards.sort(key=lambda card: (not card["alert"], "missing_permission" in card))
    context = {"cards": cards, "verdict": shown_verdict(request), "at": clock.now()}
    return render(request, template, context | _numbers(request, shared))


def _numbers(request: HttpRequest, shared: Shared) -> dict[str, Any]:
    """Return the figures and the charts of the window in the address; only `numbers_failed` if they
    cannot be read."""
    window = WINDOWS.get(request.GET.get("window", ""), WINDOWS["1h"])
    context: dict[str, Any] = {"window": window, "windows": list(WINDOWS.values())}
    try:
        with transaction.atomic(using=home()):
            past = history(ALL_QUEUES, window)
            changes = marks(past.periods[0].at)
            charts = [counts_chart(past, changes), due_chart(past)]
            context |= {"figures": figures(request, past, shared.queues), "charts": charts}
            return context | {"summed_to": past.summed_to}
    except DatabaseError as error:
        log.exception("overview.numbers_failed")
        return context | {"numbers_failed": reason(error)}


def _card(request: HttpRequest, panel: Panel, shared: Shared) -> dict[str, Any]:
    """Return the template context of one panel: its body, or the error if it raises."""
    card = {"id": slugify(panel.title), "title": panel.title, "wide": panel.wide, "alert": False}
    if panel.permission and not request.user.has_perm(panel.permission):
        return card | {"missing_permission": panel.permission}
    panel.user, panel.shared = user_of(request), shared
    try:
        with transaction.atomic(using=home()):
            context = panel.context()
            body = render_to_string(panel.template, context, request)
            return card | {"body": body, "alert": bool(context.get("alert"))}
    except Exception as error:
        log.exception("overview.panel_failed", panel=type(panel).__qualname__)
        return card | {"failed": f"{type(error).__name__}: {error}"}
