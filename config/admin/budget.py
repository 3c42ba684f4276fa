"""The rate limit of each user in the admin."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from tailrace.web.accounts import budget
from tailrace.web.pages.frame import View, too_many_requests


def with_budget(admin_view: Callable[..., View]) -> Callable[..., View]:
    """Wrap `AdminSite.admin_view`: views answer 429 if the user sends too many requests."""

    def wrapper(view: View, *args: Any, **kwargs: Any) -> View:
        inner = admin_view(view, *args, **kwargs)

        @wraps(inner)
        def wrapped(request: HttpRequest, *view_args: Any, **view_kwargs: Any) -> HttpResponseBase:
            if isinstance(request.user, User):
                try:
                    budget.spend_in_admin(request.user.pk)
                except budget.BudgetExceeded as error:
                    return too_many_requests(request, error.wait)
            return inner(request, *view_args, **view_kwargs)

        return wrapped

    return wrapper
