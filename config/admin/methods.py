"""The HTTP methods that admin pages accept."""

from collections.abc import Callable
from typing import Any

from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

View = Callable[..., HttpResponseBase]


def with_methods(admin_view: Callable[..., View]) -> Callable[..., View]:
    """Wrap `AdminSite.admin_view`: views answer 405 to methods other than GET, HEAD and POST.

    Django's admin would handle PUT, PATCH and DELETE like GET.
    """

    def wrapper(view: View, *args: Any, **kwargs: Any) -> View:
        return admin_view(require_http_methods(["GET", "HEAD", "POST"])(view), *args, **kwargs)

    return wrapper
