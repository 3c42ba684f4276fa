"""cloudevents: what a request brings as CloudEvents 1.0, in the three modes of its HTTP binding.

Structured (application/cloudevents+json), batched (application/cloudevents-batch+json), and
binary: the attributes as `ce-…` headers, the data as a JSON body.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import unquote

from django.conf import settings
from django.http import HttpRequest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from subscriptions.api import bodies
from subscriptions.api.problems import Fault, Problem, invalid

STRUCTURED = "application/cloudevents+json"
BATCHED = "application/cloudevents-batch+json"
BINARY = "application/json"
KIND = "not-a-cloud-event"
PREFIX = "ce-"

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.I)
_NAME = re.compile(r"[a-z0-9]+", re.ASCII)


def _is_time(text: str) -> str:
    try:
        fits = _TIME.fullmatch(text) and 1970 <= datetime.fromisoformat(text).year < 9999
    except ValueError:
        fits = False
    if not fits:
        raise ValueError("it is no time by RFC 3339 since 1970, such as 2026-10-01T12:00:00Z")
    return text


Word = Annotated[str, Field(min_length=1, max_length=500)]


class CloudEvent(BaseModel):
    """An event by CloudEvents 1.0. Extension attributes may stand beside these."""

    model_config = ConfigDict(extra="allow", strict=True)

    specversion: Literal["1.0"]
    id: Annotated[Word, Field(description="with `source` the same for the same event, always")]
    source: Annotated[Word, Field(max_length=200, description="where it happened")]
    type: Annotated[Word, Field(description="one of our event types")]
    subject: Annotated[Word | None, Field(description="what it is about; none: its type knows")] = (
        None
    )
    time: Annotated[str, AfterValidator(_is_time), Field(description="when it happened")] | None = (
        None
    )
    datacontenttype: Word | None = None
    dataschema: Word | None = None
    data: Annotated[
        dict[str, Any] | None, Field(description="the payload, as its type declares")
    ] = None
    data_base64: Annotated[str | None, Field(description="instead of data: JSON in base64")] = None

    @model_validator(mode="after")
    def _check(self) -> "CloudEvent":
        for name in self.model_extra or {}:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is no name of an attribute: a to z and 0 to 9")
        kind = (self.datacontenttype or BINARY).partition(";")[0].strip().lower()
        if not _is_json(kind):
            raise ValueError(f"datacontenttype: data is taken as {BINARY}, not as {kind}")
        return self

    @property
    def occurred_at(self) -> datetime | None:
        return None if self.time is None else datetime.fromisoformat(self.time)

    @property
    def trace_parent(self) -> str:
        """Its `traceparent`, an extension attribute, if it is one."""
        text = (self.model_extra or {}).get("traceparent")
        fits = isinstance(text, str) and re.fullmatch(r"[\da-f]{2}(-[\da-f]+){3}", text, re.ASCII)
        return str(text) if fits and len(str(text)) <= 100 else ""


@dataclass(frozen=True, slots=True)
class Sent:
    """An event, and where it stands in its request."""

    event: CloudEvent
    pointer: str | None
    """Into the body; None: its attributes are headers, and the body is its data."""

    def fault(self, attribute: str, detail: str) -> Fault:
        return _fault(self.pointer, [attribute], detail)


def read(request: HttpRequest) -> list[Sent]:
    """Return the events of the request in their order, or raise a Problem that names all faults."""
    kind = (request.content_type or "").lower()
    if kind == STRUCTURED:
        return _checked([("#", bodies.parse(request.body))])
    if kind == BATCHED:
        return _checked([(f"#/{place}", one) for place, one in enumerate(_batch(request))])
    if "ce-specversion" not in request.headers:
        bodies.check_type(request, STRUCTURED, BATCHED)
    return _checked([(None, _from_headers(request, kind))])


def _batch(request: HttpRequest) -> list[Any]:
    found = bodies.parse(request.body)
    most = settings.API_MAX_BATCH
    if not isinstance(found, list):
        raise invalid("a batch is an array of events", kind=KIND)
    if len(found) > most:
        raise Problem(413, f"{len(found)} events: a batch has {most} at most (API_MAX_BATCH)")
    return found


def _from_headers(request: HttpRequest, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        name.lower().removeprefix(PREFIX): unquote(value.strip(), errors="replace")
        for name, value in request.headers.items()
        if name.lower().startswith(PREFIX)
    }
    bodies.check_storable(found)
    if not {"data", "data_base64", "datacontenttype"}.isdisjoint(found):
        raise invalid("the data are the body, and their type is its Content-Type", kind=KIND)
    if request.body:
        if not _is_json(kind):
            bodies.check_type(request, BINARY, STRUCTURED, BATCHED)
        found |= {"datacontenttype": kind, "data": bodies.parse(request.body)}
    return found


def _checked(raw: Sequence[tuple[str | None, Any]]) -> list[Sent]:
    sent, faults = [], []
    for pointer, one in raw:
        try:
            sent.append(Sent(_with_data(CloudEvent.model_validate(one)), pointer))
        except ValidationError as error:
            for item in error.errors(include_url=False):
                detail = str(item["msg"]).removeprefix("Value error, ")
                faults.append(_fault(pointer, list(item["loc"]), detail))
        except ValueError as error:
            faults.append(_fault(pointer, ["data_base64"], str(error)))
    if faults:
        raise refused(faults, KIND)
    return sent


def refused(faults: Sequence[Fault], kind: str) -> Problem:
    """Return the problem that names the faults, the first of them in words."""
    words = (f"{one.pointer or one.header}: {one.detail}" for one in faults[:5])
    return invalid("; ".join(words), faults, kind=kind)


def _fault(pointer: str | None, where: Sequence[int | str], detail: str) -> Fault:
    if pointer is not None:
        return Fault(detail=detail, pointer="/".join([pointer, *map(str, where)]))
    if where and where[0] != "data":
        return Fault(detail=detail, header=f"{PREFIX}{where[0]}")
    return Fault(detail=detail, pointer="#")


def _is_json(kind: str) -> bool:
    return kind == BINARY or kind.endswith("+json")


def _with_data(event: CloudEvent) -> CloudEvent:
    """Put what is in data_base64 into data."""
    if event.data_base64 is None:
        return event
    if event.data is not None:
        raise ValueError("there is data too: give one of them")
    try:
        found = bodies.parse(base64.b64decode(event.data_base64, validate=True))
    except (ValueError, Problem):
        found = None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object in base64")
    return event.model_copy(update={"data": found})
