"""Parse requests with CloudEvents 1.0 in the modes structured, batched and binary, in which the
attributes are `ce-…` headers, and the data is a JSON body."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from django.http import HttpRequest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from tailrace.db.times import parse_time
from tailrace.environment.field_errors import Path, field_errors
from tailrace.events.publishing.validation import clean
from tailrace.web.api.faults import Fault, in_body, in_header
from tailrace.web.api.problems import Problem, of_faults, wrong_body, wrong_header
from tailrace.web.api.requests import request_body

STRUCTURED = "application/cloudevents+json"
BATCHED = "application/cloudevents-batch+json"
BINARY = "application/json"
KIND = "not-a-cloud-event"
PREFIX = "ce-"
MAX_BATCH = 100
"""Events of one request."""

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.I)
_NAME = re.compile(r"[a-z0-9]+", re.ASCII)


def _is_time(text: str) -> str:
    try:
        valid = _TIME.fullmatch(text) and 1970 <= parse_time(text).year < 9999
    except ValueError:
        valid = False
    if not valid:
        raise ValueError("not an RFC 3339 time after 1970, such as 2026-10-01T12:00:00Z")
    return text


Word = Annotated[str, Field(min_length=1, max_length=500)]


class CloudEvent(BaseModel):
    """An event by CloudEvents 1.0. Extension attributes are allowed."""

    model_config = ConfigDict(extra="allow", strict=True)

    specversion: Literal["1.0"]
    id: Annotated[Word, Field(description="unique within its `source`")]
    source: Annotated[Word, Field(max_length=200, description="where the event happened")]
    type: Annotated[Word, Field(description="an event type of this server")]
    subject: Word | None = Field(None, description="what the event is about; default: by type")
    time: Annotated[str, AfterValidator(_is_time)] | None = Field(
        None, description="when the event happened"
    )
    datacontenttype: Word | None = None
    dataschema: Word | None = None
    data: dict[str, Any] | None = Field(
        None, description="the payload, as the event type declares it"
    )
    data_base64: str | None = Field(
        None, description="the payload as JSON in base64, instead of data"
    )

    @model_validator(mode="after")
    def _check(self) -> "CloudEvent":
        for name in self.model_extra or {}:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a valid attribute name: use a to z and 0 to 9")
        kind = (self.datacontenttype or BINARY).partition(";")[0].strip().lower()
        if not _is_json(kind):
            raise ValueError(f"datacontenttype: data must be {BINARY}, not {kind}")
        return self

    @property
    def occurred_at(self) -> datetime | None:
        return None if self.time is None else parse_time(self.time)

    @property
    def trace_parent(self) -> str:
        """The extension attribute `traceparent` if it is valid, else an empty text."""
        text = (self.model_extra or {}).get("traceparent")
        valid = isinstance(text, str) and re.fullmatch(r"[\da-f]{2}(-[\da-f]+){3}", text, re.ASCII)
        return str(text) if valid and len(str(text)) <= 100 else ""


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """An event, and its path in the request."""

    event: CloudEvent
    at: Path | None
    """The event's path in the body; None in binary mode."""

    def fault(self, detail: str, *location: str | int) -> Fault:
        return _fault(self.at, location, detail)


def read(request: HttpRequest) -> list[ReceivedEvent]:
    """Return the events of the request in order, or raise a Problem with all errors."""
    kind = (request.content_type or "").lower()
    if kind == STRUCTURED:
        return _validated([((), request_body.parse(request.body))])
    if kind == BATCHED:
        return _validated([((index,), item) for index, item in enumerate(_batch(request))])
    if "ce-specversion" not in request.headers:
        request_body.check_type(request, STRUCTURED, BATCHED)
    return _validated([(None, _from_headers(request, kind))])


def _batch(request: HttpRequest) -> list[Any]:
    batch = request_body.parse(request.body)
    if not isinstance(batch, list):
        raise wrong_body("a batch must be an array of events", KIND)
    if len(batch) > MAX_BATCH:
        detail = f"the batch has {len(batch)} events; the limit is {MAX_BATCH}"
        raise Problem(413, detail)
    return batch


def _from_headers(request: HttpRequest, kind: str) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        name.lower().removeprefix(PREFIX): unquote(value.strip(), errors="replace")
        for name, value in request.headers.items()
        if name.lower().startswith(PREFIX)
    }
    for name, value in attributes.items():
        if clean(value)[1]:
            raise wrong_header(f"{PREFIX}{name}", request_body.UNSTORABLE)
    for name in sorted({"data", "data_base64", "datacontenttype"} & attributes.keys()):
        detail = "in binary mode, send the data as the body and its type as Content-Type"
        raise wrong_header(f"{PREFIX}{name}", detail, KIND)
    if request.body:
        if not _is_json(kind):
            request_body.check_type(request, BINARY, STRUCTURED, BATCHED)
        attributes |= {"datacontenttype": kind, "data": request_body.parse(request.body)}
    return attributes


def _validated(raw: Sequence[tuple[Path | None, Any]]) -> list[ReceivedEvent]:
    items, faults = [], []
    for at, item in raw:
        try:
            items.append(ReceivedEvent(_with_data(CloudEvent.model_validate(item)), at))
        except ValidationError as error:
            faults += [_fault(at, field.path, field.detail) for field in field_errors(error, item)]
        except ValueError as error:
            faults.append(_fault(at, ["data_base64"], str(error)))
    if faults:
        raise refused(faults, KIND)
    return items


def refused(faults: Sequence[Fault], kind: str, status: int = 422) -> Problem:
    """Return a problem with these errors; its detail is the first error."""
    problem = of_faults(faults, kind)
    return Problem(status, problem.detail, kind=kind, errors=faults)


def _fault(at: Path | None, location: Sequence[int | str], detail: str) -> Fault:
    if at is not None:
        return in_body(detail, *at, *location)
    if location and location[0] != "data":
        return in_header(f"{PREFIX}{location[0]}", detail)
    return in_body(detail, *location[1:])


def _is_json(kind: str) -> bool:
    return kind == BINARY or kind.endswith("+json")


def _with_data(event: CloudEvent) -> CloudEvent:
    """Decode data_base64 into data."""
    if event.data_base64 is None:
        return event
    if event.data is not None:
        raise ValueError("send either data or data_base64")
    try:
        data = request_body.parse(base64.b64decode(event.data_base64, validate=True))
    except (ValueError, Problem):
        data = None
    if not isinstance(data, dict):
        raise ValueError("not a JSON object in base64")
    return event.model_copy(update={"data": data})
