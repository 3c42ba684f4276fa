"""The overview page at `/`, whose panels are updated every few seconds."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.text import slugify
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from db import clock
from jobs.operations import acknowledge
from jobs.overview.panel import Panel, all_panels
from jobs.visibility import user_of

log = structlog.get_logger(__name__)

View = Callable[..., HttpResponse]


def for_staff(view: View) -> View:
    """Redirect to the login, and refuse users who are not staff."""

    @never_cache
    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return _to_login(request)
        if not request.user.is_staff:
            raise PermissionDenied("only staff may see the overview")
        return view(request, *args, **kwargs)

    return guarded


def _to_login(request: HttpRequest) -> HttpResponse:
    if "HX-Request" in request.headers:  # the session ended while the page polled: reload it
        return HttpResponse(status=401, headers={"HX-Refresh": "true"})
    return redirect_to_login(request.get_full_path())


@require_GET
def overview(request: HttpRequest) -> HttpResponse:
    """Show the overview to staff; redirect other users to their own pages."""
    if request.user.is_authenticated and not request.user.is_staff:
        return redirect(settings.HOME_OF_USERS)
    return _overview(request)


@for_staff
def _overview(request: HttpRequest) -> HttpResponse:
    return _render(request, "jobs/overview.html")


@require_GET
@for_staff
def poll(request: HttpRequest) -> HttpResponse:
    """Return only the panels, for htmx."""
    return _render(request, "jobs/cards.html")


@require_POST
@for_staff
def acknowledge_event(request: HttpRequest, id: int) -> HttpResponse:
    acknowledge.acknowledge(request.user, id)
    if "HX-Request" in request.headers:
        return _render(request, "jobs/cards.html")
    return redirect("overview")


def _render(request: HttpRequest, template: str) -> HttpResponse:
    cards = [_card(request, panel) for panel in all_panels()]
    return render(request, template, {"cards": cards, "at": clock.now()})


def _card(request: HttpRequest, panel: Panel) -> dict[str, Any]:
    """Render one panel; if it raises, show the error in its place."""
    card: dict[str, Any] = {"id": slugify(panel.title), "title": panel.title, "wide": panel.wide}
    if panel.permission and not request.user.has_perm(panel.permission):
        return card | {"missing_permission": panel.permission}
    panel.user = user_of(request)
    try:
        with transaction.atomic():
            return card | {"body": render_to_string(panel.template, panel.context(), request)}
    except Exception as error:
        log.exception("overview.panel_failed", panel=type(panel).__qualname__)
        return card | {"failed": f"{type(error).__name__}: {error}"}
