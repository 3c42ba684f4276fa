"""Error responses of the API, as application/problem+json (RFC 9457)."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

import structlog
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as ModelError
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from tailrace.db.pagination import InvalidCursor
from tailrace.web.api import faults
from tailrace.web.api.faults import Fault
from tailrace.web.api.schemas import Out
from tailrace.web.pages.error_pages import waited_too_long

M = TypeVar("M", bound=Model)

log = structlog.get_logger(__name__)

CONTENT_TYPE = "application/problem+json"
MAX_ERRORS = 100
"""Maximum number of errors in a response."""

TITLES = {
    "malformed": "The request is malformed",
    "unauthenticated": "The request is not authenticated",
    "invalid": "The request is not valid",
    "unknown-event-type": "Unknown event type",
    "not-a-cloud-event": "Not a valid CloudEvent",
    "event-not-allowed": "The token may not record this event",
    "scope-missing": "The token does not have the required scope",
    "permission-missing": "The user does not have the required permission",
    "confirmation-required": "The password must be entered again",
    "second-factor-required": "A second factor is required",
    "csrf": "The CSRF token is missing or wrong",
    "rate-limited": "Too many requests",
    "busy": "The server is busy",
    "exists": "The object already exists",
    "too-many": "Limit reached",
    "handler-closed": "The handler accepts no requests",
    "key-reused": "The Idempotency-Key belongs to another request",
    "key-done": "The request was already carried out; its response is not stored",
    "key-in-use": "A request with this Idempotency-Key is being processed",
}
"""Titles by the last part of a problem's type. Problems without a type use the status phrase."""
KINDS = {400: "malformed", 401: "unauthenticated"}
"""The type of all problems with this status."""


class ProblemOut(Out):
    """Why a request failed (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] = []


class Problem(Exception):
    """An error response. An operation may raise it anywhere."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        kind: str = "",
        errors: Sequence[Fault] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.kind = status, detail, kind or KINDS.get(status, "")
        self.errors, self.headers = errors[:MAX_ERRORS], headers or {}

    def response(self, request: HttpRequest) -> HttpResponse:
        body = ProblemOut(
            type=f"urn:tailrace:problem:{self.kind}" if self.kind else "about:blank",
            title=TITLES[self.kind] if self.kind else HTTPStatus(self.status).phrase,
            status=self.status,
            detail=self.detail,
            errors=list(self.errors),
        )
        text = json.dumps(body.model_dump(exclude_none=True), ensure_ascii=True)
        return HttpResponse(
            text, status=self.status, content_type=CONTENT_TYPE, headers=self.headers
        )


def of_faults(errors: Sequence[Fault], kind: str = "invalid") -> Problem:
    """Return a 422 with these errors; its detail contains the first five."""
    details = (": ".join(filter(None, (fault.place(), fault.detail))) for fault in errors[:5])
    return Problem(422, "; ".join(details), kind=kind, errors=errors)


def wrong_body(detail: str, kind: str = "invalid") -> Problem:
    """Return a 422 about the whole body."""
    return of_faults([faults.in_body(detail)], kind)


def wrong_field(name: str, detail: str) -> Problem:
    return of_faults([faults.in_body(detail, name)])


def wrong_parameter(name: str, detail: str) -> Problem:
    return of_faults([faults.in_parameter(name, detail)])


def wrong_header(name: str, detail: str, kind: str = "invalid") -> Problem:
    return of_faults([faults.in_header(name, detail)], kind)


def busy(error: Exception, seconds: int) -> Problem:
    """Return the answer to a request that cannot be done now. It may be sent again after
    `seconds`."""
    return Problem(503, str(error), kind="busy", headers={"Retry-After": str(seconds)})


def not_found(what: str) -> Problem:
    return Problem(404, f"there is no such {what}, or it belongs to another user")


def too_many_requests(detail: str, wait: float) -> Problem:
    """Return a 429; `wait` is in seconds."""
    headers = {"Retry-After": str(math.ceil(wait))}
    return Problem(429, detail, kind="rate-limited", headers=headers)


def find_row(rows: QuerySet[M], id: int, what: str) -> M:
    """Return the row with this id, or raise a 404. `what` is the noun in the message."""
    row = rows.filter(pk=id).first()
    if row is None:
        raise not_found(what)
    return row


def of_model(error: ModelError) -> Problem:
    return of_faults(faults.of_model(error))


def register(api: NinjaAPI) -> None:
    problems: dict[type[Exception], Callable[[Any], Problem]] = {
        Problem: lambda problem: problem,
        InvalidCursor: lambda error: wrong_parameter(str(error), "not a cursor of this list"),
        ModelError: of_model,
        Http404: lambda error: no_such_address(),
        HttpError: lambda error: Problem(error.status_code, str(error)),
        RequestDataTooBig: lambda error: Problem(413, "the body is too large"),
        SuspiciousOperation: lambda error: Problem(400, "the request is malformed"),
        MultiPartParserError: lambda error: Problem(
            400, f"the body is not a multipart form: {error}"
        ),
        UnreadablePostError: lambda error: Problem(400, "the request is malformed"),
        OperationalError: _database_unavailable,
        InterfaceError: _database_unavailable,
    }
    register_errors(api, problems)
    api.add_exception_handler(ValidationError, _of_request)
    api.add_exception_handler(Exception, _unexpected)


def register_errors(api: NinjaAPI, errors: Mapping[Any, Callable[[Any], Problem]]) -> None:
    """Make the API answer these exceptions with the problems that the functions return."""
    for exception, problem_of in errors.items():
        api.add_exception_handler(exception, _handler(problem_of))


def _handler(problem_of: Callable[[Any], Problem]) -> Callable[[HttpRequest, Any], HttpResponse]:
    return lambda request, error: problem_of(error).response(request)


def no_such_address() -> Problem:
    return Problem(404, "the API has no such URL; see /api/docs")


def _of_request(request: HttpRequest, error: Any) -> HttpResponse:
    body = getattr(request, "parsed", None)
    return of_faults([faults.of_ninja(each, body) for each in error.errors]).response(request)


def _database_unavailable(error: Exception) -> Problem:
    log.warning("api.database_unavailable", error=str(error).strip().splitlines()[:1])
    reason = (
        "a database statement took too long, or waited too long for a lock"
        if waited_too_long(error)
        else "the database is not available"
    )
    return Problem(503, reason, headers={"Retry-After": "5"})


def _unexpected(request: HttpRequest, error: Any) -> HttpResponse:
    log.exception("api.failed", path=request.path, error=type(error).__name__, exc_info=error)
    got_request_exception.send(sender=NinjaAPI, request=request)
    return Problem(500, "internal error; it was logged").response(request)
