"""My browsers: those one is told in by push messages."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from subscriptions import devices
from subscriptions.models import Device
from subscriptions.pages.person import PersonRequest, for_person


@require_POST
@for_person
def add(request: PersonRequest) -> HttpResponse:
    """Add the browser that sends its push subscription as JSON, with a `name`: 201, or 422 and
    what is wrong."""
    url, p256dh, auth, name = _said(request)
    try:
        devices.add(request.user, url, p256dh, auth, name)
    except devices.DeviceError as error:
        return JsonResponse({"error": str(error)}, status=422)
    messages.success(request, "You are told in this browser from now on.")
    return JsonResponse({}, status=201)


@require_POST
@for_person
def remove(request: PersonRequest, id: int) -> HttpResponse:
    devices.remove(get_object_or_404(Device, pk=id, user=request.user))
    messages.success(request, "The browser is removed.")
    return redirect("my_preferences")


def _said(request: HttpRequest) -> tuple[str, str, str, str]:
    try:
        said: Any = json.loads(request.body)
    except (ValueError, RecursionError):
        said = None
    said = said if isinstance(said, dict) else {}
    keys = said.get("keys") if isinstance(said.get("keys"), dict) else {}
    found = (said.get("endpoint"), keys.get("p256dh"), keys.get("auth"), said.get("name"))
    url, p256dh, auth, name = (_text(one) for one in found)
    return url, p256dh, auth, name


def _text(value: Any) -> str:
    """Return what may be stored of a text: no NUL, no half of a surrogate pair."""
    text = value if isinstance(value, str) else ""
    return text.replace("\0", "").encode(errors="replace").decode()
