"""Wraps ninja's views: HEAD requests, problems instead of plain text, headers of rate limits and
caches."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt

from tailrace.web.api import idempotency
from tailrace.web.api.problems import CONTENT_TYPE, Problem, no_such_address

View = Callable[..., HttpResponseBase]


def api_view(view: View) -> View:
    """Decorate a view: answer HEAD like GET, 404 and 405 with a problem, add the headers of the
    caller's rate limit, and forbid caching."""

    # tailrace.web.api.auth checks the CSRF token when a session authenticates the request.
    @csrf_exempt
    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        method = request.method
        request.method = "GET" if method == "HEAD" else method
        try:
            response = view(request, *args, **kwargs)
        except Http404:
            response = unknown_address(request)
        idempotency.keep(request, response)
        request.method = method  # so that the server leaves out the body of a HEAD response
        if response.status_code == 405 and response.get("Content-Type") != CONTENT_TYPE:
            allowed = response["Allow"]
            detail = f"this URL does not accept {method}; it accepts {allowed}"
            response = Problem(405, detail, headers={"Allow": allowed}).response(request)
        for name, value in getattr(request, "rate_limit_headers", {}).items():
            response[name] = value
        response.setdefault("Cache-Control", "no-store")
        patch_vary_headers(response, ("Authorization", "Cookie"))
        return response

    return wrapped


def api_pattern(pattern: Any) -> Any:
    pattern.callback = api_view(pattern.callback)
    return pattern


def unknown_address(request: HttpRequest) -> HttpResponse:
    return no_such_address().response(request)
