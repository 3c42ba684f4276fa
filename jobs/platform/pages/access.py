"""Restrict the pages of the overview to staff, and the metrics to monitoring and to staff who may
see queues."""

import hmac
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache

from tailrace.environment.conf import conf
from tailrace.jobs.platform.pages.admin_links import admin_address

VIEW_QUEUE = "tailrace_jobs.view_queue"


def for_staff(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Redirect anonymous users to the login, and refuse users who are not staff."""

    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated and "HX-Request" in request.headers:
            # The session ended while the page polled: reload it.
            return HttpResponse(status=401, headers={"HX-Refresh": "true"})
        if not request.user.is_authenticated:
            own = settings.is_overridden("LOGIN_URL")
            login = None if own else admin_address("login") or None
            return redirect_to_login(request.get_full_path(), login)
        if not request.user.is_staff:
            raise PermissionDenied("only staff may see the overview")
        return view(request, *args, **kwargs)

    return guarded


def may_see_queues(request: HttpRequest) -> bool:
    """Whether the request is one of staff with the permission to see queues."""
    return request.user.is_staff and request.user.has_perm(VIEW_QUEUE)


def has_token(request: HttpRequest) -> bool:
    """Whether the request is one of monitoring, with HEALTH_TOKEN."""
    header = request.headers.get("Authorization", "").encode()
    token = f"Bearer {conf.HEALTH_TOKEN}".encode()
    return bool(conf.HEALTH_TOKEN) and hmac.compare_digest(header, token)
