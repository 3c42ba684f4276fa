"""The methods of requests that the pages of the admin take."""

from collections.abc import Callable
from typing import Any

from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

View = Callable[..., HttpResponseBase]


def with_methods(admin_view: Callable[..., View]) -> Callable[..., View]:
    """Return `AdminSite.admin_view`, whose views answer 405 to what is neither GET nor POST: they
    would take PUT, PATCH and DELETE for GET."""

    def wrapper(view: View, *args: Any, **kwargs: Any) -> View:
        return admin_view(require_http_methods(["GET", "HEAD", "POST"])(view), *args, **kwargs)

    return wrapper
