"""Read an upload from a request, as a form with a picture or as JSON."""

from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest

from tailrace.domains.photos.api.schemas import PhotoIn, PictureIn
from tailrace.domains.photos.uploads.ingest import PhotoFields
from tailrace.web.api.requests import request_body
from tailrace.web.uploads.api import FORM, json_body, one_file, openapi_body, validated


def body_of_upload() -> Any:
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
    return openapi_body(picture, PhotoIn)


def read_upload(request: HttpRequest) -> tuple[PhotoFields, UploadedFile | None]:
    """Return the fields and the picture, if there is one."""
    if request.content_type == FORM:
        file = one_file(request)
        form = request.POST.dict()
        form.pop("csrfmiddlewaretoken", None)
        request_body.check_storable(form)
        values = {name: text for name, text in form.items() if text.strip()}
        return PhotoFields(**validated(PictureIn, values).model_dump()), file
    return PhotoFields(**json_body(request, PhotoIn).model_dump()), None
