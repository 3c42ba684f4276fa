"""The API's addresses: ninja's, with problems for what ninja answers in plain text."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, re_path
from django.utils.cache import patch_vary_headers
from django.views.decorators.csrf import csrf_exempt

from subscriptions.api.problems import CONTENT_TYPE, Problem, nothing_here
from subscriptions.api.site import api

View = Callable[..., HttpResponseBase]


def _answering(view: View) -> View:
    """Answer HEAD as GET; turn a plain 404 or 405 into a problem; let no cache keep anything."""

    @csrf_exempt  # the gate asks for the CSRF token, where a session is what lets in
    @wraps(view)
    def answering(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        asked, request.method = request.method, _looked_up(request)
        try:
            answer = view(request, *args, **kwargs)
        except Http404:
            answer = _nothing(request)
        request.method = asked  # so that the server leaves the body out
        if answer.status_code == 405 and answer.get("Content-Type") != CONTENT_TYPE:
            answer = _not_allowed(request, answer["Allow"])
        answer.setdefault("Cache-Control", "no-store")
        patch_vary_headers(answer, ("Authorization", "Cookie"))
        return answer

    return answering


def _looked_up(request: HttpRequest) -> str | None:
    return "GET" if request.method == "HEAD" else request.method


def _nothing(request: HttpRequest) -> HttpResponse:
    return nothing_here().response(request)


def _not_allowed(request: HttpRequest, allow: str) -> HttpResponse:
    return Problem(
        405, f"{request.method} is not done here, but {allow} is", headers={"Allow": allow}
    ).response(request)


def _wrapped(pattern: Any) -> URLPattern:
    pattern.callback = _answering(pattern.callback)
    checked: URLPattern = pattern
    return checked


app_name = "api"
urlpatterns = [
    *(_wrapped(pattern) for pattern in api.urls[0]),
    re_path(r"^.*$", _answering(_nothing), name="nothing"),
]
