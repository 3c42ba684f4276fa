"""Error responses of the API, as application/problem+json (RFC 9457)."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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

from web.api.schemas import Out
from web.busy import waited_too_long
from web.pagination import InvalidCursor

M = TypeVar("M", bound=Model)

log = structlog.get_logger(__name__)

CONTENT_TYPE = "application/problem+json"
MAX_ERRORS = 100
"""Errors that a response names."""

TITLES = {
    "invalid": "The request is not valid",
    "unknown-event-type": "Unknown event type",
    "not-a-cloud-event": "Not a valid CloudEvent",
    "event-not-allowed": "The token may not record this event",
    "scope-missing": "The token does not have the required scope",
    "permission-missing": "The user does not have the required permission",
    "confirmation-required": "The session is too old for this",
    "second-factor-required": "A second factor is required",
    "csrf": "The CSRF token is missing or wrong",
    "rate-limited": "Too many requests",
    "busy": "The server is busy",
    "exists": "It already exists",
    "too-many": "Limit reached",
    "handler-closed": "The handler takes no requests",
    "key-reused": "The Idempotency-Key belongs to another request",
    "key-in-use": "A request with this Idempotency-Key is being worked on",
}
"""Titles by the last part of a problem's type; other problems have the title of their status."""


class Fault(Out):
    """One error, and where it is in the request."""

    detail: str
    pointer: str | None = None
    """A JSON pointer into the body, `#/subject_pattern`."""
    parameter: str | None = None
    """A parameter of the path or the query."""
    header: str | None = None


class ProblemOut(Out):
    """Why a request failed (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] = []


class Problem(Exception):
    """Raised anywhere in an operation, it becomes the response."""

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
        self.status, self.detail, self.kind = status, detail, kind
        self.errors, self.headers = errors[:MAX_ERRORS], headers or {}

    def response(self, request: HttpRequest) -> HttpResponse:
        """Return the response, with the headers of the caller's rate limit if there are any."""
        body = ProblemOut(
            type=f"urn:tailrace:problem:{self.kind}" if self.kind else "about:blank",
            title=TITLES[self.kind] if self.kind else HTTPStatus(self.status).phrase,
            status=self.status,
            detail=self.detail,
            errors=list(self.errors),
        )
        text = json.dumps(body.model_dump(exclude_none=True), ensure_ascii=True)
        limits = getattr(request, "rate_limit_headers", {})
        return HttpResponse(
            text,
            status=self.status,
            content_type=CONTENT_TYPE,
            headers={**limits, **self.headers},
        )


def invalid(detail: str, errors: Iterable[Fault] = (), kind: str = "invalid") -> Problem:
    return Problem(422, detail, kind=kind, errors=list(errors))


def of_faults(faults: Sequence[Fault]) -> Problem:
    """Return a 422 with these errors, whose detail names the first of them."""
    return invalid(_joined(faults), faults)


def wrong_parameter(name: str, detail: str) -> Problem:
    return invalid(f"{name}: {detail}", [Fault(detail=detail, parameter=name)])


def wrong_field(name: str, detail: str) -> Problem:
    return invalid(f"{name}: {detail}", [Fault(detail=detail, pointer=pointer([name]))])


def not_found(what: str) -> Problem:
    return Problem(404, f"there is no such {what}, or it belongs to another user")


def too_many_requests(detail: str, wait: float) -> Problem:
    """Return a 429; `wait` is in seconds."""
    headers = {"Retry-After": str(math.ceil(wait))}
    return Problem(429, detail, kind="rate-limited", headers=headers)


def find_row(rows: QuerySet[M], id: int, what: str) -> M:
    """Return the row with this id, or raise 404."""
    row = rows.filter(pk=id).first()
    if row is None:
        raise not_found(what)
    return row


def of_model(error: ModelError) -> Problem:
    """Return the errors of a model's full_clean, field by field."""
    errors = error.error_dict if hasattr(error, "error_dict") else {"__all__": error.error_list}
    faults = [
        Fault(detail=message, pointer=pointer([] if field == "__all__" else [field]))
        for field, field_errors in errors.items()
        for field_error in field_errors
        for message in field_error.messages
    ]
    return of_faults(faults)


def register(api: NinjaAPI) -> None:
    """Turn every exception that an operation may raise into a problem."""
    problems: dict[type[Exception], Callable[[Any], Problem]] = {
        Problem: lambda problem: problem,
        ValidationError: _of_request,
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
    for exception, problem_of in problems.items():
        api.add_exception_handler(exception, _handler(problem_of))
    api.add_exception_handler(Exception, _unexpected)


def _handler(problem_of: Callable[[Any], Problem]) -> Callable[[HttpRequest, Any], HttpResponse]:
    return lambda request, error: problem_of(error).response(request)


def no_such_address() -> Problem:
    return Problem(404, "there is nothing at this address; see /api/docs")


def _of_request(error: ValidationError) -> Problem:
    return of_faults([_fault(details) for details in error.errors])


def _fault(error: dict[str, Any]) -> Fault:
    source, *location = error["loc"]
    detail = str(error["msg"]).removeprefix("Value error, ")
    if source == "body":
        return Fault(detail=detail, pointer=pointer(location[1:]))  # it starts with an argument
    return Fault(detail=detail, parameter=str(location[-1]) if location else None)


def _joined(faults: Sequence[Fault]) -> str:
    return "; ".join(": ".join(filter(None, (_place(fault), fault.detail))) for fault in faults[:5])


def _place(fault: Fault) -> str | None:
    return (fault.pointer or "").removeprefix("#").strip("/") or fault.parameter or fault.header


def pointer(location: Sequence[Any]) -> str:
    """Return the JSON pointer to a place in the body."""
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in location)
    return "#" + "".join(f"/{part}" for part in escaped)


def _database_unavailable(error: Exception) -> Problem:
    log.warning("api.database_unavailable", error=str(error).strip().splitlines()[:1])
    reason = (
        "a statement took too long, or waited for what another transaction holds"
        if waited_too_long(error)
        else "the database is not available"
    )
    return Problem(503, reason, headers={"Retry-After": "5"})


def _unexpected(request: HttpRequest, error: Any) -> HttpResponse:
    log.exception("api.failed", path=request.path, error=type(error).__name__, exc_info=error)
    got_request_exception.send(sender=NinjaAPI, request=request)
    return Problem(500, "internal error; it was logged").response(request)
