"""Voices and recordings in the API: list, upload, download, delete."""

from datetime import datetime
from typing import Any

from django.http import FileResponse, HttpRequest
from ninja import Query, Router, Status

from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import Recording, VoiceEnrolment
from tailrace.domains.protection.services.voices import uploads
from tailrace.domains.protection.upload_paths import VOICES
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import find_row, not_found
from tailrace.web.api.schemas import Out
from tailrace.web.uploads.api import one_file, openapi_body, upload_problems
from tailrace.web.uploads.limits import UPLOAD_COST

READ, WRITE = Needs("protection:read"), Needs("protection:write")
DOWNLOAD = Needs("protection:read", cost=uploads.DOWNLOAD_COST)
UPLOAD = Needs(
    "protection:write",
    files=VOICES,
    cost=UPLOAD_COST,
)
FILE = {"type": "string", "format": "binary", "description": "WAV: 16 kHz, mono, 16-bit PCM"}
BODY = openapi_body({"type": "object", "properties": {"file": FILE}, "required": ["file"]})
voices = Router()
recordings = Router()


class VoiceOut(Out):
    id: int
    seconds: float
    created_at: datetime


class RecordingOut(Out):
    id: int
    name: str
    state: str
    """pending, matched, different, unknown (no voice is enrolled) or broken."""
    reason: str
    score: float | None
    """The similarity to the most similar voice, at most 1."""
    model_name: str
    model_version: str
    created_at: datetime
    compared_at: datetime | None


@voices.get("", auth=READ, response=Page[VoiceOut], summary="List your voices")
def list_voices(request: HttpRequest, query: Query[PageParams]) -> Page[VoiceOut]:
    """The samples of your own voice, newest first."""
    rows = VoiceEnrolment.objects.filter(user=caller(request).user)
    return newest_first(rows, query, VoiceOut.model_validate)


@voices.post(
    "",
    auth=UPLOAD,
    response={201: VoiceOut},
    summary="Enrol a sample of your voice",
    openapi_extra=BODY,
)
def enrol_voice(request: HttpRequest) -> Status[VoiceOut]:
    """Send the file as `multipart/form-data`. If you have sent the file before, its existing sample
    is returned. Recordings that wait for a voice are compared with it."""
    _name, content = _file(request)
    return Status(201, VoiceOut.model_validate(_stored(uploads.enrol, request, content)))


@voices.get("/{int:id}/file", auth=DOWNLOAD, response=None, summary="Download a voice")
def download_voice(request: HttpRequest, id: int) -> FileResponse:
    """The WAV file, as you sent it."""
    rows = VoiceEnrolment.objects.filter(user=caller(request).user)
    return _download(rows.select_related("file"), id, "voice")


@voices.delete("/{int:id}", auth=WRITE, response={204: None}, summary="Delete a voice")
def delete_voice(request: HttpRequest, id: int) -> Status[None]:
    return _delete(request, VoiceEnrolment, id, "voice")


@recordings.get("", auth=READ, response=Page[RecordingOut], summary="List your recordings")
def list_recordings(request: HttpRequest, query: Query[PageParams]) -> Page[RecordingOut]:
    """Newest first."""
    return newest_first(_recordings(request), query, RecordingOut.model_validate)


@recordings.post(
    "",
    auth=UPLOAD,
    response={202: RecordingOut},
    summary="Have a recording compared",
    openapi_extra=BODY,
)
def upload_recording(request: HttpRequest) -> Status[RecordingOut]:
    """Send the file as `multipart/form-data`. If you have sent the file before, its existing
    recording is returned. A job compares the recording with your voices: get the recording to see
    its state."""
    name, content = _file(request)
    return Status(202, RecordingOut.model_validate(_stored(uploads.record, request, content, name)))


@recordings.get("/{int:id}", auth=READ, response=RecordingOut, summary="Get one recording")
def get_recording(request: HttpRequest, id: int) -> RecordingOut:
    return RecordingOut.model_validate(find_row(_recordings(request), id, "recording"))


@recordings.get("/{int:id}/file", auth=DOWNLOAD, response=None, summary="Download a recording")
def download_recording(request: HttpRequest, id: int) -> FileResponse:
    """The file, as you sent it, with its name."""
    return _download(_recordings(request).select_related("file"), id, "recording")


@recordings.delete("/{int:id}", auth=WRITE, response={204: None}, summary="Delete a recording")
def delete_recording(request: HttpRequest, id: int) -> Status[None]:
    return _delete(request, Recording, id, "recording")


def _recordings(request: HttpRequest) -> Any:
    return Recording.objects.filter(user=caller(request).user)


def _file(request: HttpRequest) -> tuple[str, bytes]:
    file = one_file(request)
    return file.name or "", file.read()


def _stored(store: Any, request: HttpRequest, *content: Any) -> Any:
    with upload_problems():
        return store(caller(request).user, *content)


def _download(rows: Any, id: int, label: str) -> FileResponse:
    return storage.download(find_row(rows, id, label), not_found(label))


def _delete(request: HttpRequest, model: Any, id: int, label: str) -> Status[None]:
    if not storage.delete_owners(model.objects.filter(user=caller(request).user, pk=id)):
        raise not_found(label)
    return Status(204, None)
