"""The HTTP methods, the rate limit and the Content-Security-Policy of all views of the admin. The
policy has two exceptions for unfold: `'unsafe-eval'`, because Alpine evaluates expressions in its
templates, and `style` attributes, because unfold and its scripts set widths with them. Inline
scripts and inline stylesheets are still forbidden."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

from tailrace.web.accounts import budget
from tailrace.web.pages.frame import View, too_many_requests

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self'; "
    "style-src-attr 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def limited(admin_view: Callable[..., View]) -> Callable[..., View]:
    """Wrap `AdminSite.admin_view`: views have the policy, answer 429 if the user sends too many
    requests, and 405 to PUT, PATCH and DELETE, which Django's admin would handle like GET."""

    def wrapper(view: View, *args: Any, **kwargs: Any) -> View:
        inner = admin_view(require_http_methods(["GET", "HEAD", "POST"])(view), *args, **kwargs)

        @wraps(inner)
        def wrapped(request: HttpRequest, *view_args: Any, **view_kwargs: Any) -> HttpResponseBase:
            try:
                if isinstance(request.user, User):
                    budget.spend_in_admin(request.user.pk)
                response = inner(request, *view_args, **view_kwargs)
            except budget.BudgetExceeded as error:
                response = too_many_requests(request, error.wait)
            response.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
            return response

        return wrapped

    return wrapper


def without_style(
    each_context: Callable[[HttpRequest], dict[str, Any]],
) -> Callable[[HttpRequest], dict[str, Any]]:
    """Wrap `AdminSite.each_context`: leave out the colours, which unfold puts into a <style>."""
    return lambda request: {**each_context(request), "colors": None}
