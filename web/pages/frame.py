"""What all pages of a signed-in person share: access, time zone, security headers and the frame."""

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

from events.discovery import import_modules
from jobs.overview.security import CONTENT_SECURITY_POLICY
from web.menu import page_links

View = Callable[..., HttpResponseBase]


class PersonRequest(HttpRequest):
    """The request of a signed-in person."""

    user: User


def for_person(view: View) -> View:
    """Require a signed-in person, show times in their time zone, and forbid caching and scripts of
    other sites; the view may set its own Content-Security-Policy."""

    @never_cache
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase
        if isinstance(request.user, User):
            with timezone.override(zone_of(request.user)):
                response = view(request, *args, **kwargs)
        else:
            response = _to_login(request)
        return with_security_policy(response)

    return wrapped


def with_security_policy(response: HttpResponseBase) -> HttpResponseBase:
    response.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
    return response


def _to_login(request: HttpRequest) -> HttpResponse:
    if by_htmx(request):  # the session ended while the page was open: reload it
        return HttpResponse(status=401, headers={"HX-Refresh": "true"})
    next_path = request.get_full_path() if request.method in ("GET", "HEAD") else reverse("me")
    return redirect_to_login(next_path)


def zone_of(user: User) -> ZoneInfo:
    """Return the time zone of the user as the `time_zone_of` of an app returns it, else UTC."""
    hooks = [getattr(module, "time_zone_of", None) for module in import_modules("menu")]
    names = [hook(user) for hook in hooks if hook]
    try:
        return ZoneInfo(next(filter(None, names), "UTC"))
    except (LookupError, ValueError):  # a name that a newer time zone database has dropped
        return ZoneInfo("UTC")


def show(
    request: PersonRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render a page whose template extends `web/frame.html`."""
    framed = {"links": page_links(request), **(context or {})}
    return render(request, template, framed, status=status)


def by_htmx(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers
