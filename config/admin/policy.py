"""The Content-Security-Policy of admin pages, with the exceptions that unfold needs.

`'unsafe-eval'` is needed because Alpine evaluates expressions in unfold's templates. `style`
attributes are needed because unfold and its scripts set widths with them. Inline scripts and inline
stylesheets are still forbidden.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

View = Callable[..., HttpResponseBase]

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self'; "
    "style-src-attr 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


def with_policy(admin_view: Callable[..., View]) -> Callable[..., View]:
    """Wrap `AdminSite.admin_view`: responses have the policy."""

    def wrapper(view: View, *args: Any, **kwargs: Any) -> View:
        inner = admin_view(view, *args, **kwargs)

        @wraps(inner)
        def wrapped(*view_args: Any, **view_kwargs: Any) -> HttpResponseBase:
            response = inner(*view_args, **view_kwargs)
            response.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
            return response

        return wrapped

    return wrapper


def without_style(
    each_context: Callable[[HttpRequest], dict[str, Any]],
) -> Callable[[HttpRequest], dict[str, Any]]:
    """Wrap `AdminSite.each_context`: leave out the colours, which unfold puts into a <style>."""
    return lambda request: {**each_context(request), "colors": None}
