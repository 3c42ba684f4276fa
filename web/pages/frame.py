"""What all pages of a signed-in person share: access, time zone and the frame."""

import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache

from tailrace.web import budget
from tailrace.web.menu import page_links
from tailrace.web.time_zones import zone_of

View = Callable[..., HttpResponseBase]


class PersonRequest(HttpRequest):
    """The request of a signed-in person."""

    user: User


def for_person(view: View) -> View:
    """Require a signed-in person within their budget, show times in their time zone, and forbid
    caching. A costly view calls `budget.spend` once more."""

    @never_cache
    @within_budget()
    @wraps(view)
    def wrapped(request: PersonRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with timezone.override(zone_of(request.user)):
            return view(request, *args, **kwargs)

    return wrapped


def within_budget(cost: float = 1.0) -> Callable[[View], View]:
    """Require a signed-in person whose budget allows a request of this cost, and no more: for what
    is no page, such as a picture."""

    def decorated(view: View) -> View:
        @wraps(view)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not isinstance(request.user, User):
                return _to_login(request)
            try:
                budget.spend(request.user.pk, cost=cost)
                return view(request, *args, **kwargs)
            except budget.BudgetExceeded as error:
                return too_many_requests(request, error.wait)

        return wrapped

    return decorated


def for_everybody(view: View) -> View:
    """Keep each address within its budget, at a page that needs no account."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            budget.spend_of_address(request)
        except budget.BudgetExceeded as error:
            response = HttpResponse("Too many requests\n", "text/plain", status=429)
            response["Retry-After"] = str(math.ceil(error.wait))
            return response
        return view(request, *args, **kwargs)

    return wrapped


def _to_login(request: HttpRequest) -> HttpResponse:
    if by_htmx(request):  # the session ended while the page was open: reload it
        return HttpResponse(status=401, headers={"HX-Refresh": "true"})
    next_path = request.get_full_path() if request.method in ("GET", "HEAD") else reverse("me")
    return redirect_to_login(next_path)


def too_many_requests(request: HttpRequest, wait: float) -> HttpResponse:
    """Return the page that asks to wait for so many seconds."""
    context = {"seconds": math.ceil(wait)}
    response = render(request, "tailrace/web/too_many_requests.html", context, status=429)
    response["Retry-After"] = str(math.ceil(wait))
    if by_htmx(request):
        response["HX-Reswap"] = "none"  # the page stays as it is
    return response


def show(
    request: PersonRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render a page whose template extends `tailrace/web/frame.html`."""
    framed = {"links": page_links(request), **(context or {})}
    return render(request, template, framed, status=status)


def by_htmx(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers
