"""Answer 503 with Retry-After if a request would have to wait too long."""

from collections.abc import Callable

import structlog
from django.db import OperationalError
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render

from tailrace.db.connections import timed_out
from tailrace.db.locks import Blocked
from tailrace.web.accounts.security.password_hasher import TooManyAtOnce

RETRY_AFTER = 2
"""Seconds."""

log = structlog.get_logger(__name__)


def waited_too_long(error: Exception) -> bool:
    """Whether the error is a statement timeout or a lock timeout of the database."""
    return isinstance(error, Blocked) or timed_out(error)


class AnswerBusy:
    """Middleware for the pages: answers 503 if too many passwords are being hashed, or if a
    statement or its wait for a lock took too long (WEB_STATEMENT_SECONDS, WEB_LOCK_SECONDS)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_exception(
        self, request: HttpRequest, exception: Exception
    ) -> HttpResponseBase | None:
        if isinstance(exception, OperationalError) and waited_too_long(exception):
            log.warning("web.waited_too_long", error=str(exception).strip().splitlines()[:1])
        elif not isinstance(exception, TooManyAtOnce):
            return None
        response = render(request, "tailrace/web/errors/503.html", status=503)
        response["Retry-After"] = str(RETRY_AFTER)
        return response
