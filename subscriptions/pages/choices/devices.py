"""Add and remove browsers with push enabled, on the preferences page."""

import json
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect

from tailrace.subscriptions.channels.push import devices
from tailrace.subscriptions.models import Device
from tailrace.web.pages.frame import PersonRequest, person_page


@person_page("POST")
def add(request: PersonRequest) -> HttpResponse:
    """Add the browser whose push subscription and `name` are in the JSON body: 201, or 422."""
    try:
        devices.add(request.user, *_push_subscription(request))
    except devices.DeviceError as error:
        return JsonResponse({"error": str(error)}, status=422)
    messages.success(request, "Push notifications are enabled in this browser.")
    return JsonResponse({}, status=201)


@person_page("POST")
def remove(request: PersonRequest, id: int) -> HttpResponse:
    devices.remove(get_object_or_404(Device, pk=id, user=request.user))
    messages.success(request, "The browser was removed.")
    return redirect("my_preferences")


def _push_subscription(request: HttpRequest) -> list[str]:
    """Return endpoint, both keys and name; a missing value is an empty text."""
    try:
        body: Any = json.loads(request.body)
    except (ValueError, RecursionError):
        body = None
    body = body if isinstance(body, dict) else {}
    keys = body.get("keys") if isinstance(body.get("keys"), dict) else {}
    values = (body.get("endpoint"), keys.get("p256dh"), keys.get("auth"), body.get("name"))
    return list(map(_text, values))


def _text(value: Any) -> str:
    """Return the value as a text that PostgreSQL can store: without NUL and lone surrogates."""
    text = value if isinstance(value, str) else ""
    return text.replace("\0", "").encode(errors="replace").decode()
