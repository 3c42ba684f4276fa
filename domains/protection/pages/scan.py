"""The button that requests a scan."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from tailrace.domains.protection.scanning.requests import ScanRefused, request_scan
from tailrace.web.pages.frame import PersonRequest, for_person


@require_POST
@for_person
def scan(request: PersonRequest) -> HttpResponse:
    """Request the scan of the plan by `handler`."""
    try:
        request_scan(request.user.pk, request.POST.get("handler", ""))
    except ScanRefused as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "It begins in a moment. You are notified of what is new.")
    return redirect("protection:overview")
