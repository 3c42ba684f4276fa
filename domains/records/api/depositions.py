"""Depositions in the API: submit, list, show, download a file, approve, reject."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import FileResponse, HttpRequest
from ninja import Query, Router, Status

from tailrace.domains.records.api.schemas import DepositionIn, DepositionOut, FileOut, ReasonIn
from tailrace.domains.records.depositions import decisions
from tailrace.domains.records.depositions.metadata import MAX_BYTES
from tailrace.domains.records.depositions.receive import receive
from tailrace.domains.records.depositions.storage import files as stored_files
from tailrace.domains.records.models import Deposition
from tailrace.domains.records.models.visibility import visible_depositions, visible_files
from tailrace.domains.records.upload_paths import DEPOSITS
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.idempotency import KeyHeader, key_problems
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import Problem, find_row, not_found, wrong_field
from tailrace.web.api.requests import request_body
from tailrace.web.uploads.api import FORM, json_body, openapi_body, upload_problems, validated
from tailrace.web.uploads.download import download_response
from tailrace.web.uploads.limits import UPLOAD_COST

READ = Needs("records:read")
DEPOSIT = Needs(
    "records:deposit",
    files=DEPOSITS,
    cost=UPLOAD_COST,
)
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
CURATE = Needs("records:curate", decisions.CURATE)
router = Router()


@router.post(
    "",
    auth=DEPOSIT,
    response={200: DepositionOut, 201: DepositionOut},
    summary="Submit a deposition",
    openapi_extra=BODY,
)
def submit_deposition(
    request: HttpRequest,
    idempotency_key: KeyHeader = None,
) -> Status[DepositionOut]:
    """Send metadata and files as `multipart/form-data`, or only metadata as JSON.

    Jobs validate, approve, publish and index the deposition; get the deposition to see its state.
    Returns 201, or 200 if the deposition was sent before with the same `Idempotency-Key`.
    """
    body, files = _read_deposition(request)
    metadata = body.metadata.model_dump(exclude_unset=True)
    with upload_problems(), key_problems():
        result = receive(
            caller(request).user,
            metadata,
            files,
            identifier=body.identifier,
            request_key=idempotency_key or "",
        )
    return Status(201 if result.is_new else 200, deposition_out(result.deposition))


@router.get("", auth=READ, response=Page[DepositionOut], summary="List your depositions")
def list_depositions(request: HttpRequest, query: Query[PageParams]) -> Page[DepositionOut]:
    """Returns your depositions, newest first."""
    rows = Deposition.objects.filter(submitted_by=caller(request).user)
    return newest_first(rows.prefetch_related("files", "records"), query, deposition_out)


@router.get("/{int:id}", auth=READ, response=DepositionOut, summary="Get one deposition")
def get_deposition(request: HttpRequest, id: int) -> DepositionOut:
    return deposition_out(find_row(visible_depositions(caller(request).user), id, "deposition"))


@router.get("/{int:id}/files/{int:file}", auth=READ, summary="Download a file of a deposition")
def get_file(request: HttpRequest, id: int, file: int) -> FileResponse:
    """You can download files of your own depositions, and of records that you may see."""
    rows = visible_files(caller(request).user).filter(deposition=id)
    try:
        row = find_row(rows, file, "file")
        return download_response(stored_files.open(row.key), row.name)
    except FileNotFoundError:
        raise not_found("file") from None


@router.post(
    "/{int:id}/approve", auth=CURATE, response=DepositionOut, summary="Approve a deposition"
)
def approve_deposition(request: HttpRequest, id: int) -> DepositionOut:
    """Curators approve valid depositions of users if RECORDS_AUTO_APPROVE is off."""
    return _decide(id, lambda pk: decisions.approve(pk, caller(request).user))


@router.post("/{int:id}/reject", auth=CURATE, response=DepositionOut, summary="Reject a deposition")
def reject_deposition(request: HttpRequest, id: int, body: ReasonIn) -> DepositionOut:
    """Curators reject valid depositions. The depositor is notified of the reason."""
    return _decide(id, lambda pk: decisions.reject(pk, caller(request).user, body.reason))


def _decide(id: int, decide: Callable[[int], Deposition]) -> DepositionOut:
    row = find_row(Deposition.objects.all(), id, "deposition")
    try:
        return deposition_out(decide(row.pk))
    except decisions.DecisionRefused as error:
        raise Problem(409, str(error)) from None


def deposition_out(row: Deposition) -> DepositionOut:
    url = f"{settings.PUBLIC_URL}/api/records/depositions/{row.pk}"
    return DepositionOut.of(
        row,
        url=url,
        files=[FileOut.of(file, url=f"{url}/files/{file.pk}") for file in row.files.all()],
        record=next((record.pk for record in row.records.all()), None),
    )


def _read_deposition(request: HttpRequest) -> tuple[DepositionIn, list[UploadedFile]]:
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
