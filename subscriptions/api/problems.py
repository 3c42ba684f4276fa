"""problems: every answer that says no, as RFC 9457 has it (application/problem+json)."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import structlog
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as ModelError
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from subscriptions.api.shapes import Out

log = structlog.get_logger(__name__)

CONTENT_TYPE = "application/problem+json"

TITLES = {
    "invalid": "Something in the request is not valid",
    "unknown-event-type": "No event type has this name",
    "not-a-cloud-event": "This is no CloudEvent that is understood here",
    "scope-missing": "The token lacks a scope",
    "permission-missing": "The user lacks a permission",
    "csrf": "The CSRF token is missing or wrong",
    "rate-limited": "Too many requests",
    "exists": "It is there already",
    "too-many": "There are too many of them",
}
"""By the last word of a problem's type; a problem of no kind has the status's own title."""


class Fault(Out):
    """One thing that is wrong, and where it stands."""

    detail: str
    pointer: str | None = None
    """A JSON pointer into the body, `#/subject_pattern`."""
    parameter: str | None = None
    """A parameter of the path or the query."""
    header: str | None = None


class ProblemOut(Out):
    """What is wrong with a request, by RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] = []


class Problem(Exception):
    """Raise it anywhere in an operation to answer with it."""

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
        self.errors, self.headers = errors, headers or {}

    def response(self, request: HttpRequest) -> HttpResponse:
        """Return the answer, with the headers of the caller's budget where there is one."""
        body = ProblemOut(
            type=f"urn:tailrace:problem:{self.kind}" if self.kind else "about:blank",
            title=TITLES[self.kind] if self.kind else HTTPStatus(self.status).phrase,
            status=self.status,
            detail=self.detail,
            errors=list(self.errors),
        )
        text = json.dumps(body.model_dump(exclude_none=True), ensure_ascii=True)
        answer = HttpResponse(text, status=self.status, content_type=CONTENT_TYPE)
        for name, value in {**getattr(request, "budget", {}), **self.headers}.items():
            answer[name] = value
        return answer


def invalid(detail: str, errors: Iterable[Fault] = (), kind: str = "invalid") -> Problem:
    return Problem(422, detail, kind=kind, errors=list(errors))


def wrong_parameter(name: str, detail: str) -> Problem:
    return invalid(f"{name}: {detail}", [Fault(detail=detail, parameter=name)])


def wrong_field(name: str, detail: str) -> Problem:
    return invalid(f"{name}: {detail}", [Fault(detail=detail, pointer=_pointer([name]))])


def not_found(what: str) -> Problem:
    return Problem(404, f"there is no such {what}, or it is not yours")


def of_model(error: ModelError) -> Problem:
    """Return what a model's full_clean says, field by field."""
    found = error.error_dict if hasattr(error, "error_dict") else {"__all__": error.error_list}
    faults = [
        Fault(detail=text, pointer=_pointer([] if name == "__all__" else [name]))
        for name, those in found.items()
        for one in those
        for text in one.messages
    ]
    return invalid(_joined(faults), faults)


def register(api: NinjaAPI) -> None:
    """Answer to all that an operation may raise."""
    answers: dict[type[Exception], Callable[[Any], Problem]] = {
        Problem: lambda problem: problem,
        ValidationError: _of_request,
        ModelError: of_model,
        Http404: lambda error: nothing_here(),
        HttpError: lambda error: Problem(error.status_code, str(error)),
        RequestDataTooBig: lambda error: Problem(413, "the body is larger than is taken here"),
        SuspiciousOperation: lambda error: Problem(400, "the request cannot be read"),
        MultiPartParserError: lambda error: Problem(400, f"the body is no multipart form: {error}"),
        UnreadablePostError: lambda error: Problem(400, "the request cannot be read"),
        OperationalError: _away,
        InterfaceError: _away,
    }
    for kind, answer in answers.items():
        api.add_exception_handler(kind, _answering(answer))
    api.add_exception_handler(Exception, _unforeseen)


def _answering(answer: Callable[[Any], Problem]) -> Callable[[HttpRequest, Any], HttpResponse]:
    return lambda request, error: answer(error).response(request)


def nothing_here() -> Problem:
    return Problem(404, "nothing has this address; /api/docs lists what there is")


def _of_request(error: ValidationError) -> Problem:
    faults = [_fault(one) for one in error.errors]
    return invalid(_joined(faults), faults)


def _fault(error: dict[str, Any]) -> Fault:
    source, *where = error["loc"]
    detail = str(error["msg"]).removeprefix("Value error, ")
    if source == "body":
        return Fault(detail=detail, pointer=_pointer(where[1:]))  # its first part is an argument
    return Fault(detail=detail, parameter=str(where[-1]) if where else None)


def _joined(faults: Sequence[Fault]) -> str:
    return "; ".join(": ".join(filter(None, (_place(one), one.detail))) for one in faults[:5])


def _place(fault: Fault) -> str | None:
    return (fault.pointer or "").removeprefix("#").strip("/") or fault.parameter or fault.header


def _pointer(where: Sequence[Any]) -> str:
    return "#" + "".join(f"/{str(one).replace('~', '~0').replace('/', '~1')}" for one in where)


def _away(error: Exception) -> Problem:
    log.warning("api.database_away", error=str(error).strip().splitlines()[:1])
    return Problem(503, "the database does not answer now", headers={"Retry-After": "5"})


def _unforeseen(request: HttpRequest, error: Any) -> HttpResponse:
    log.exception("api.failed", path=request.path, error=type(error).__name__, exc_info=error)
    got_request_exception.send(sender=NinjaAPI, request=request)
    return Problem(500, "something went wrong here, and was noted").response(request)
