"""Staff can use only the account pages until they have proved a second factor."""

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.deprecation import MiddlewareMixin

from tailrace.web.accounts.security import second_factor

WITHOUT = ("/accounts/", "/api/", "/healthz", "/readyz")
"""Paths without this check: the pages where the factor is set up, the API, which checks it itself,
and the health pages, which need no user."""


class RequireSecondFactor(MiddlewareMixin):
    """Middleware that redirects staff without a second factor, if REQUIRE_SECOND_FACTOR is set."""

    async_capable = False

    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if request.path.startswith(WITHOUT) or not is_missing(request):
            return None
        if "HX-Request" in request.headers:
            return HttpResponse(status=401, headers={"HX-Refresh": "true"})
        has_factor = second_factor.of(request.user) is not None
        return redirect("second_factor" if has_factor else "second_factor_setup")


def is_missing(request: HttpRequest) -> bool:
    """Return whether the session's user needs a second factor and has not proved it."""
    if not settings.REQUIRE_SECOND_FACTOR or settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return False
    user = request.user
    is_staff = isinstance(user, User) and (user.is_staff or user.is_superuser)
    return is_staff and not second_factor.session_has_it(request)
