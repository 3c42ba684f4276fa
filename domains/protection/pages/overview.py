"""The first page: alerts with advice, and the plan with its next scans; the request of a scan."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from tailrace.domains.protection.models import Alert
from tailrace.domains.protection.pages.frame import show_page
from tailrace.domains.protection.pages.next_steps import next_steps
from tailrace.domains.protection.services.scanning.requests import OURS, ScanRefused, request_scan
from tailrace.subscriptions.models import PlanSubscription
from tailrace.subscriptions.plans.schedules import next_runs
from tailrace.web.pages.frame import PersonRequest, for_person
from tailrace.web.pages.lists import list_page

REPORTS = "protection.reports_generate"
SCAN_STARTS = "The scan begins in a moment. You will be notified about new findings."
REPORT_STARTS = "Your report is being created. It appears under Reports in a moment."


@require_safe
@for_person
def overview(request: PersonRequest) -> HttpResponse:
    """What to do next, the alerts, newest first, and the next scans of the plan."""
    alerts, older = list_page(request, Alert.objects.filter(user=request.user))
    context: dict[str, Any] = {
        "alerts": alerts,
        "older": older,
        **_plan(request),
    }
    is_served = "subscription" in context and context["subscription"].is_served
    context["steps"] = next_steps(request.user, is_served=is_served)
    return show_page(request, "tailrace/protection/overview.html", context)


@require_POST
@for_person
def scan(request: PersonRequest) -> HttpResponse:
    """Request the scan of the plan by the posted `handler`."""
    handler = request.POST.get("handler", "")
    try:
        request_scan(request.user.pk, handler)
    except ScanRefused as error:
        messages.error(request, str(error))
    else:
        messages.success(request, REPORT_STARTS if handler == REPORTS else SCAN_STARTS)
    return redirect("protection:overview")


def _plan(request: PersonRequest) -> dict[str, Any]:
    """Return the subscription to a plan, and the next runs of the plan's jobs of protection."""
    rows = PlanSubscription.objects.select_related("plan")
    subscription = rows.filter(account=request.user).first()
    if subscription is None:
        return {}
    runs = next_runs(subscription) if subscription.is_served else []
    protection_runs = [run for run in runs if run.job.handler.startswith(OURS)]
    return {"subscription": subscription, "runs": protection_runs}
