"""The page of exposures: the breaches with watched values, and advice about each."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBadRequest
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from tailrace.domains.protection.alerts.advice import advice
from tailrace.domains.protection.models import Exposure
from tailrace.domains.protection.pages.frame import show_page
from tailrace.domains.protection.services.exposures import moves
from tailrace.web.pages.frame import PersonRequest, for_person
from tailrace.web.pages.lists import PAGE_SIZE, list_page


@require_safe
@for_person
def exposures(request: PersonRequest) -> HttpResponse:
    """List the exposures in the requested `state`; the default is `new`."""
    state = request.GET.get("state") or Exposure.State.NEW.value
    if state not in Exposure.State.values:
        raise Http404
    user_exposures = Exposure.objects.filter(user=request.user)
    rows, older = list_page(
        request, user_exposures.filter(state=state).select_related("item", "breach")
    )
    context: dict[str, Any] = {
        "exposures": [{"row": row, "advice": advice(row.breach.data_classes)} for row in rows],
        "older": older,
        "state": state,
        "states": Exposure.State.values,
        "others": [each for each in Exposure.State.values if each != state],
        "query": f"state={state}",
        "any": bool(rows) or user_exposures.exists(),
    }
    return show_page(request, "tailrace/protection/exposures.html", context)


@require_POST
@for_person
def move(request: PersonRequest) -> HttpResponse:
    """Set the state of the exposures with these `id`s to `state`; redirect to the list of the state
    `from`."""
    state, back = request.POST.get("state", ""), request.POST.get("from", "")
    try:
        ids = [int(id) for id in request.POST.getlist("id")]
        if len(ids) > PAGE_SIZE:
            return HttpResponseBadRequest(f"At most {PAGE_SIZE} exposures at once.")
        moved = moves.move(request.user.pk, ids, state)
    except (ValueError, OverflowError) as error:
        return HttpResponseBadRequest(str(error), "text/plain")
    if ids:
        messages.success(request, f"{moved} exposure{'' if moved == 1 else 's'} marked as {state}.")
    else:
        messages.error(request, "Choose the exposures to mark.")
    known = back if back in Exposure.State.values else Exposure.State.NEW.value
    return redirect(f"{reverse('protection:exposures')}?state={known}")
