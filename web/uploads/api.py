"""Uploads in the API: a form with files or JSON, and the problems that report errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pydantic
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from tailrace.web.api.faults import in_body, of_pydantic
from tailrace.web.api.problems import Problem, of_faults, wrong_field
from tailrace.web.api.requests import request_body
from tailrace.web.uploads.errors import StorageUnavailable, UploadRejected

FORM, JSON = "multipart/form-data", "application/json"
M = TypeVar("M", bound=pydantic.BaseModel)


def openapi_body(form: dict[str, Any], json: type[pydantic.BaseModel] | None = None) -> Any:
    """Return the OpenAPI description of a body: a form with this schema or, if given, JSON."""
    content = {FORM: {"schema": form}}
    if json is not None:
        content[JSON] = {"schema": json.model_json_schema()}
    return {"requestBody": {"required": True, "content": content}}


def json_body(request: HttpRequest, schema: type[M]) -> M:
    """Return the parsed JSON body. Raise a problem if the body has another type or is not valid."""
    request_body.check_type(request, JSON, FORM)
    request_body.check_size(request)
    return validated(schema, request_body.parse(request.body))


def validated(schema: type[M], values: Any) -> M:
    try:
        return schema.model_validate(values)
    except pydantic.ValidationError as error:
        raise of_faults(of_pydantic(error, values)) from None


def one_file(request: HttpRequest) -> UploadedFile:
    """Return the file in the field `file`. Raise a problem unless it is the form's only file."""
    files = request.FILES.getlist("file")
    count = sum(len(values) for _, values in request.FILES.lists())
    if len(files) != 1 or count != 1:
        raise wrong_field("file", f"send one file as `file`; this request has {count} files")
    return files[0]


@contextmanager
def upload_problems() -> Iterator[None]:
    """Turn the errors of an upload in the block into problems."""
    try:
        yield
    except UploadRejected as error:
        faults = [in_body(message, field) for field, message in error.errors]
        raise Problem(error.status, str(error), kind=error.kind, errors=faults) from None
    except StorageUnavailable as error:
        raise Problem(503, str(error), headers={"Retry-After": "60"}) from None
