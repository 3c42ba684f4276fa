"""The errors of a request, each with its wrong part: a JSON pointer (RFC 6901) to a field of the
body, or the name of a parameter or header."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import pydantic
from django.core.exceptions import ValidationError as ModelError

from tailrace.environment.field_errors import field_error, field_errors
from tailrace.web.api.schemas import Out

IDEMPOTENCY_KEY = "Idempotency-Key"
_FRAGMENT = "!$&'()*+,;=:@/?-._~"
"""Characters that a URI fragment may contain unescaped, besides letters and digits."""


class Fault(Out):
    """One error, and the wrong part of the request: `pointer`, `parameter` or `header`."""

    detail: str
    pointer: str | None = None
    """A JSON pointer into the body, as a URI fragment (RFC 6901): `#/subject_pattern`; `#` is the
    whole body. In a form, it names a field."""
    parameter: str | None = None
    """The name of a parameter of the path or the query."""
    header: str | None = None
    """The name of a header."""

    def place(self) -> str:
        """Return the wrong part in a readable form, such as `payload/title`; "": the whole body."""
        field = (self.pointer or "").removeprefix("#").strip("/")
        return field or self.parameter or self.header or ""


def pointer(location: Sequence[Any]) -> str:
    escaped = (str(part).replace("~", "~0").replace("/", "~1") for part in location)
    return quote("#" + "".join(f"/{part}" for part in escaped), safe="#" + _FRAGMENT)


def in_body(detail: str, *location: str | int) -> Fault:
    """Return an error of the field of the body with this path; without one, of the whole body."""
    return Fault(detail=detail, pointer=pointer(location))


def in_parameter(name: str, detail: str) -> Fault:
    return Fault(detail=detail, parameter=name)


def in_header(name: str, detail: str) -> Fault:
    return Fault(detail=detail, header=name)


def of_pydantic(error: pydantic.ValidationError, body: Any) -> list[Fault]:
    return [in_body(field.detail, *field.path) for field in field_errors(error, body)]


def of_model(error: ModelError) -> list[Fault]:
    errors = error.error_dict if hasattr(error, "error_dict") else {"__all__": error.error_list}
    return [
        in_body(message, *([] if field == "__all__" else [field]))
        for field, field_errors in errors.items()
        for error_of_field in field_errors
        for message in error_of_field.messages
    ]


def of_ninja(details: dict[str, Any], body: Any) -> Fault:
    """Return an error of ninja. The first part of its `loc` is the source: body, query, header …"""
    source, *location = details["loc"]
    if source in ("body", "form", "file"):  # the first part is the argument of the operation
        field = field_error({**details, "loc": location[1:]}, body)
        return in_body(field.detail, *field.path)
    detail = field_error({**details, "loc": ()}, None).detail
    name = str(location[0])
    return in_header(name, detail) if source == "header" else in_parameter(name, detail)
