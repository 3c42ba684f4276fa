"""Middlewares for the pages: 503 if a request would have to wait too long, and 405 for browsers."""

import structlog
from django.db import OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from tailrace.db.connections import timed_out
from tailrace.db.locks import Blocked
from tailrace.web.accounts.security.password_hasher import TooManyAtOnce

RETRY_AFTER = 2
"""Seconds."""

log = structlog.get_logger(__name__)


def waited_too_long(error: Exception) -> bool:
    """Whether the error is a statement timeout or a lock timeout of the database."""
    return isinstance(error, Blocked) or timed_out(error)


class AnswerBusy(MiddlewareMixin):
    """Answers 503 with Retry-After if too many passwords are being hashed, or if a statement or its
    wait for a lock took too long (WEB_STATEMENT_SECONDS, WEB_LOCK_SECONDS)."""

    async_capable = False

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if isinstance(exception, OperationalError) and waited_too_long(exception):
            log.warning("web.waited_too_long", error=str(exception).strip().splitlines()[:1])
        elif not isinstance(exception, TooManyAtOnce):
            return None
        response = render(request, "tailrace/web/errors/503.html", status=503)
        response["Retry-After"] = str(RETRY_AFTER)
        return response


class ExplainNotAllowed(MiddlewareMixin):
    """Adds a page to an empty 405 response if a browser sent a GET to a URL that only accepts
    POST."""

    async_capable = False

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        wants_html = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
        if response.status_code != 405 or not wants_html or response.streaming or response.content:
            return response
        page = render(request, "tailrace/web/errors/405.html", status=405)
        page["Allow"] = response["Allow"]
        return page
