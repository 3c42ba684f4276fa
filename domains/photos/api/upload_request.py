"""Read an upload from a request, as a form with a picture or as JSON, and report its errors."""

from typing import Any

import pydantic
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from tailrace.domains.photos.api.schemas import PhotoIn, PictureIn
from tailrace.domains.photos.uploads.errors import FieldError, UploadRejected
from tailrace.domains.photos.uploads.ingest import PhotoFields
from tailrace.web.api import request_body
from tailrace.web.api.faults import in_field, of_pydantic
from tailrace.web.api.problems import Problem, of_faults

MULTIPART, JSON = "multipart/form-data", "application/json"


def openapi_body() -> dict[str, Any]:
    """Return the OpenAPI description of both kinds of body."""
    picture = PictureIn.model_json_schema()
    picture["properties"] = {
        "file": {
            "type": "string",
            "format": "binary",
            "description": "the picture: JPEG, PNG or WebP, at most PHOTOS_MAX_MEGABYTES",
        },
        **picture["properties"],
    }
    picture["required"] = ["file"]
    content = {MULTIPART: {"schema": picture}, JSON: {"schema": PhotoIn.model_json_schema()}}
    return {"requestBody": {"required": True, "content": content}}


def read_upload(request: HttpRequest) -> tuple[PhotoFields, UploadedFile | None]:
    """Return the fields and the picture, if there is one."""
    if request.content_type == MULTIPART:
        files = request.FILES.getlist("file")
        count = sum(len(values) for _, values in request.FILES.lists())
        if len(files) != 1 or count != 1:
            message = f"send one picture as `file`; this request has {count} files"
            raise upload_problem(UploadRejected(FieldError("file", message)), 422, "invalid")
        form = request.POST.dict()
        form.pop("csrfmiddlewaretoken", None)
        request_body.check_storable(form)
        values = {name: _value(name, text) for name, text in form.items() if text.strip()}
        return _fields(PictureIn, values), files[0]
    request_body.check_type(request, JSON, MULTIPART)
    request_body.check_size(request)
    return _fields(PhotoIn, request_body.parse(request.body)), None


def upload_problem(error: UploadRejected, status: int, kind: str = "") -> Problem:
    """Return the problem that names the fields of a rejected upload."""
    faults = [in_field(field.field, field.message) for field in error.errors]
    return Problem(status, str(error), kind=kind, errors=faults)


_BOOLEANS = {"true": True, "on": True, "1": True, "false": False, "0": False}


def _value(name: str, text: str) -> Any:
    try:
        if name == "place_from_timeline":
            return _BOOLEANS.get(text.lower(), text)
        return float(text) if name in ("lat", "lon") else text
    except ValueError:
        return text


def _fields(schema: type[PhotoIn] | type[PictureIn], values: Any) -> PhotoFields:
    try:
        return PhotoFields(**schema.model_validate(values).model_dump())
    except pydantic.ValidationError as error:
        raise of_faults(of_pydantic(error, values)) from None
