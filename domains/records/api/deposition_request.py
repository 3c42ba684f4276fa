"""Read a deposition from a request, as a form with files or as JSON."""

from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from tailrace.domains.records.api.schemas import DepositionIn
from tailrace.domains.records.depositions.metadata import MAX_BYTES
from tailrace.web.api.problems import Problem, wrong_field
from tailrace.web.api.requests import request_body
from tailrace.web.uploads.api import FORM, json_body, openapi_body, validated

BODY = openapi_body(
    {
        "type": "object",
        "properties": {
            "metadata": {"type": "string", "description": "`metadata` of the JSON body, as text"},
            "identifier": {"type": "string"},
            "files": {"type": "array", "items": {"type": "string", "format": "binary"}},
        },
        "required": ["metadata"],
    },
    DepositionIn,
)


def read_deposition(request: HttpRequest) -> tuple[DepositionIn, list[UploadedFile]]:
    """Return the fields and the files of the request. Raises Problem."""
    if request.content_type == FORM:
        names = set(request.FILES) - {"files"}
        if names:
            raise wrong_field(min(names), "send files in the field `files`")
        text = request.POST.get("metadata", "").encode()
        identifier = request.POST.get("identifier", "")
        request_body.check_storable(identifier, "identifier")
        values = {"metadata": _metadata(text), "identifier": identifier}
        return validated(DepositionIn, values), request.FILES.getlist("files")
    return json_body(request, DepositionIn), []


def _metadata(text: bytes) -> Any:
    if len(text) > MAX_BYTES:
        raise Problem(413, f"the metadata has {len(text)} bytes; the limit is {MAX_BYTES}")
    return request_body.parse(text)
