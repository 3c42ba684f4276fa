"""Read a deposition from a request, as a form with files or as JSON."""

from typing import Any

import pydantic
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from tailrace.domains.records.api.schemas import DepositionIn
from tailrace.domains.records.metadata import MAX_BYTES
from tailrace.web.api import request_body
from tailrace.web.api.faults import of_pydantic
from tailrace.web.api.problems import Problem, of_faults, wrong_field

MULTIPART, JSON = "multipart/form-data", "application/json"


def openapi_body() -> dict[str, Any]:
    """Return the OpenAPI description of the request body, as a form and as JSON."""
    schema = DepositionIn.model_json_schema()
    form = {
        "type": "object",
        "properties": {
            "metadata": {"type": "string", "description": "`metadata` of the JSON body, as text"},
            "identifier": {"type": "string"},
            "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
        },
        "required": ["metadata"],
    }
    content = {MULTIPART: {"schema": form}, JSON: {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


def read_deposition(request: HttpRequest) -> tuple[DepositionIn, list[UploadedFile]]:
    """Return the fields and the files of the request. Raises Problem."""
    if request.content_type == MULTIPART:
        names = set(request.FILES) - {"files"}
        if names:
            raise wrong_field(min(names), "send files in the field `files`")
        text = request.POST.get("metadata", "").encode()
        identifier = request.POST.get("identifier", "")
        request_body.check_storable(identifier, "identifier")
        values = {"metadata": _metadata(text), "identifier": identifier}
        return _validated(values), request.FILES.getlist("files")
    request_body.check_type(request, JSON, MULTIPART)
    request_body.check_size(request)
    return _validated(request_body.parse(request.body)), []


def _metadata(text: bytes) -> Any:
    if len(text) > MAX_BYTES:
        raise Problem(413, f"the metadata has {len(text)} bytes; the limit is {MAX_BYTES}")
    return request_body.parse(text)


def _validated(values: Any) -> DepositionIn:
    try:
        return DepositionIn.model_validate(values)
    except pydantic.ValidationError as error:
        raise of_faults(of_pydantic(error, values)) from None
