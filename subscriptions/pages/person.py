"""person: what the pages of a signed-in person have in common: who may see them, and the frame."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from jobs.overview import CONTENT_SECURITY_POLICY
from subscriptions import inbox, navigation
from subscriptions.models import Preferences

View = Callable[..., HttpResponseBase]
MANY = 100
"""Unread items that are counted, at most."""


class PersonRequest(HttpRequest):
    """What a page gets: somebody has signed in."""

    user: User


def for_person(view: View) -> View:
    """Send strangers to the login; show times in the person's zone; forbid foreign scripts (or
    what the view's own policy says) and caches."""

    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase
        if isinstance(request.user, User):
            with timezone.override(zone_of(request.user)):
                response = view(request, *args, **kwargs)
        else:
            response = _to_login(request)
        return strict(response)

    return guarded


def strict(response: HttpResponseBase) -> HttpResponseBase:
    response.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
    return response


def _to_login(request: HttpRequest) -> HttpResponse:
    if "HX-Request" in request.headers:  # the session ended under an open page: load it anew
        return HttpResponse(status=401, headers={"HX-Refresh": "true"})
    asked = request.get_full_path() if request.method in ("GET", "HEAD") else reverse("me")
    return redirect_to_login(asked)


def zone_of(user: User) -> ZoneInfo:
    name = Preferences.objects.filter(user=user).values_list("time_zone", flat=True).first()
    try:
        return ZoneInfo(name or "UTC")
    except (LookupError, ValueError):  # a name that a newer time zone database has dropped
        return ZoneInfo("UTC")


def show(
    request: PersonRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render a page of ours, in the frame with the navigation and the unread count."""
    return show_framed(request, f"subscriptions/me/{template}", context, status)


def show_framed(
    request: PersonRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render a page of any app, whose template extends `subscriptions/me/frame.html`."""
    framed = {
        "unread": unread(request.user),
        "others": navigation.links(request),
        **(context or {}),
    }
    return render(request, template, framed, status=status)


def unread(user: User) -> str:
    """Return how many items of the inbox are unread, as it is shown: empty for none, or `99+`."""
    found = len(inbox.of(user).filter(read_at=None).order_by().values_list("pk")[:MANY])
    return "99+" if found >= MANY else str(found or "")


def by_htmx(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers
