"""What the pages of signed-in users share: access, budget, time zone and frame."""

import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from tailrace.web.accounts import budget
from tailrace.web.accounts.time_zones import zone_of
from tailrace.web.pages.headers import CONTENT_SECURITY_POLICY
from tailrace.web.pages.menu import page_links

View = Callable[..., HttpResponseBase]


class PersonRequest(HttpRequest):
    user: User


def for_person(view: View) -> View:
    """Decorate a page: require a signed-in user within their budget, show times in their time zone,
    and forbid caching. A costly view calls `budget.spend` once more."""

    @never_cache
    @within_budget()
    @wraps(view)
    def wrapped(request: PersonRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with timezone.override(zone_of(request.user)):
            return view(request, *args, **kwargs)

    return wrapped


def person_page(*methods: str) -> Callable[[View], View]:
    """Decorate a page as `for_person` does; other HTTP methods than these get a 405."""
    return lambda view: require_http_methods(methods)(for_person(view))


def within_budget(cost: float = 1.0) -> Callable[[View], View]:
    """Decorate a view: require only a signed-in user with enough budget for a request of this cost.
    Use it for responses that are no pages, such as pictures."""

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
    """Decorate a page that needs no account: limit the requests of each IP address."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            budget.spend_of_address(request)
        except budget.BudgetExceeded as error:
            retry = {"Retry-After": str(math.ceil(error.wait))}
            return HttpResponse("Too many requests\n", "text/plain", status=429, headers=retry)
        return view(request, *args, **kwargs)

    return wrapped


def for_strangers(kind: str) -> Callable[[View], View]:
    """Return a decorator for pages of this kind, which need no account and show forms: limit the
    requests of each IP address. Pages of another kind have a budget of their own."""

    def decorated(view: View) -> View:
        @wraps(view)
        def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                budget.spend_of_address(request, kind)
            except budget.BudgetExceeded as error:
                return too_many_requests(request, error.wait)
            return view(request, *args, **kwargs)

        return wrapped

    return decorated


def _to_login(request: HttpRequest) -> HttpResponse:
    if by_htmx(request):  # the session ended while the page was open: reload it
        return HttpResponse(status=401, headers={"HX-Refresh": "true"})
    next_path = request.get_full_path() if request.method in ("GET", "HEAD") else reverse("me")
    return redirect_to_login(next_path)


def too_many_requests(request: HttpRequest, wait: float) -> HttpResponse:
    """Return a 429 page that asks the user to wait for `wait` seconds."""
    context = {"seconds": math.ceil(wait)}
    response = render(request, "tailrace/web/errors/too_many_requests.html", context, status=429)
    response["Retry-After"] = str(math.ceil(wait))
    if by_htmx(request):
        response["HX-Reswap"] = "none"  # htmx leaves the page unchanged
    return response


def show(
    request: PersonRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    status: int | None = None,
) -> HttpResponse:
    """Render a page whose template extends `tailrace/web/frame.html`. By default, the status is 422
    if the form in the context has errors, else 200."""
    context = context or {}
    if status is None:
        form = context.get("form")
        status = 422 if isinstance(form, BaseForm) and form.errors else 200
    return render(request, template, {"links": page_links(request), **context}, status=status)


def show_with_map(
    request: PersonRequest, template: str, context: Mapping[str, Any], *, tiles: str, credit: str
) -> HttpResponse:
    """Show a page that may load map tiles from their host. `tiles` is their URL template (empty:
    the base map of this site) and `credit` their attribution, for the template."""
    response = show(request, template, {**context, "tiles": tiles, "credit": credit})
    if tiles:
        parts = urlsplit(tiles)
        response["Content-Security-Policy"] = CONTENT_SECURITY_POLICY.replace(
            "img-src 'self'", f"img-src 'self' {parts.scheme}://{parts.netloc}"
        )
    return response


def show_form(request: HttpRequest, template: str, form: BaseForm, wait: int = 0) -> HttpResponse:
    """Render a form for users who are not signed in: status 422 if it has errors, or 429 if the
    client has to wait for `wait` seconds."""
    status = 429 if wait else 422 if form.is_bound else 200
    response = render(request, template, {"form": form}, status=status)
    if wait:
        response["Retry-After"] = str(wait)
    return response


def by_htmx(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers
