"""The action that requests a scan."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from tailrace.domains.protection.services.scanning.requests import ScanRefused, request_scan
from tailrace.web.pages.frame import PersonRequest, for_person


@require_POST
@for_person
def scan(request: PersonRequest) -> HttpResponse:
    """Request the scan of the plan by the posted `handler`."""
    try:
        request_scan(request.user.pk, request.POST.get("handler", ""))
    except ScanRefused as error:
        messages.error(request, str(error))
    else:
        messages.success(
            request, "The scan begins in a moment. You will be notified of new findings."
        )
    return redirect("protection:overview")
