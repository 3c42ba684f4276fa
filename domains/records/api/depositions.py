"""Depositions in the API: submit, list, show, download a file, approve, reject."""

from typing import Annotated, Any

from django.conf import settings
from django.http import FileResponse, HttpRequest
from ninja import Header, Query, Router, Status

from tailrace.domains.records.api.deposition_request import openapi_body, read_deposition
from tailrace.domains.records.api.schemas import DepositionOut, FileOut, ReasonIn
from tailrace.domains.records.depositions import decisions
from tailrace.domains.records.depositions.errors import (
    DecisionRefused,
    DepositionRefused,
    FilesTooLarge,
    LimitReached,
    StorageUnavailable,
)
from tailrace.domains.records.depositions.receive import (
    DEPOSIT_COST,
    MAX_FORM_BYTES,
    max_bytes,
    receive,
)
from tailrace.domains.records.file_response import file_response
from tailrace.domains.records.models import Deposition, DepositionFile
from tailrace.domains.records.visibility import visible_depositions, visible_files
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.faults import IDEMPOTENCY_KEY, in_field
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import Problem, find_row, not_found

READ = Needs("records:read")
DEPOSIT = Needs(
    "records:deposit",
    files=lambda: (max_bytes() + MAX_FORM_BYTES, "RECORDS_MAX_MEGABYTES"),
    cost=DEPOSIT_COST,
)
CURATE = Needs("records:curate", decisions.CURATE)
router = Router()


@router.post(
    "",
    auth=DEPOSIT,
    response={200: DepositionOut, 201: DepositionOut},
    summary="Submit a deposition",
    openapi_extra=openapi_body(),
)
def submit_deposition(
    request: HttpRequest,
    idempotency_key: Annotated[
        str | None,
        Header(
            alias=IDEMPOTENCY_KEY,
            max_length=200,
            pattern=r"^[!-~]+$",
            description="the same for all tries of one deposition, so that it is submitted once",
        ),
    ] = None,
) -> Status[DepositionOut]:
    """Send metadata and files as `multipart/form-data`, or only the metadata as JSON.

    Jobs validate, approve, publish and index it; ask for the deposition to follow it. 201 with the
    deposition; 200 if it was sent before, with the same `Idempotency-Key`.
    """
    body, files = read_deposition(request)
    metadata = body.metadata.model_dump(exclude_unset=True)
    try:
        result = receive(
            caller(request).user,
            metadata,
            files,
            identifier=body.identifier,
            request_key=idempotency_key or "",
        )
    except LimitReached as error:
        raise _problem(error, 409, "too-many") from None
    except FilesTooLarge as error:
        raise _problem(error, 413) from None
    except DepositionRefused as error:
        kind = "key-reused" if error.field == IDEMPOTENCY_KEY else "invalid"
        raise _problem(error, 422, kind) from None
    except StorageUnavailable as error:
        raise Problem(503, str(error), headers={"Retry-After": "60"}) from None
    return Status(201 if result.is_new else 200, deposition_out(result.deposition))


@router.get("", auth=READ, response=Page[DepositionOut], summary="List your depositions")
def list_depositions(request: HttpRequest, query: Query[PageParams]) -> Page[DepositionOut]:
    """Newest first."""
    rows = Deposition.objects.filter(submitted_by=caller(request).user)
    return newest_first(rows.prefetch_related("files", "records"), query, deposition_out)


@router.get("/{int:id}", auth=READ, response=DepositionOut, summary="Get one deposition")
def get_deposition(request: HttpRequest, id: int) -> DepositionOut:
    return deposition_out(find_row(visible_depositions(caller(request).user), id, "deposition"))


@router.get("/{int:id}/files/{int:file}", auth=READ, summary="Download a file of a deposition")
def get_file(request: HttpRequest, id: int, file: int) -> FileResponse:
    """Of your own depositions, and of records that you may see."""
    rows = visible_files(caller(request).user).filter(deposition=id)
    try:
        return file_response(find_row(rows, file, "file"))
    except FileNotFoundError:
        raise not_found("file") from None


@router.post(
    "/{int:id}/approve", auth=CURATE, response=DepositionOut, summary="Approve a deposition"
)
def approve_deposition(request: HttpRequest, id: int) -> DepositionOut:
    """For curators, with RECORDS_AUTO_APPROVE=no."""
    user = caller(request).user
    try:
        return deposition_out(decisions.approve(_row(id).pk, user))
    except DecisionRefused as error:
        raise Problem(409, str(error)) from None


@router.post("/{int:id}/reject", auth=CURATE, response=DepositionOut, summary="Reject a deposition")
def reject_deposition(request: HttpRequest, id: int, body: ReasonIn) -> DepositionOut:
    """For curators: a valid deposition that waits. Its depositor is notified of the reason."""
    user = caller(request).user
    try:
        return deposition_out(decisions.reject(_row(id).pk, user, body.reason))
    except DecisionRefused as error:
        raise Problem(409, str(error)) from None


def _row(id: int) -> Deposition:
    return find_row(Deposition.objects.all(), id, "deposition")


def deposition_out(row: Deposition) -> DepositionOut:
    url = f"{settings.PUBLIC_URL}/api/records/depositions/{row.pk}"
    computed: dict[str, Any] = {
        "url": url,
        "files": [_file_out(url, file) for file in row.files.all()],
        "record": next((record.pk for record in row.records.all()), None),
    }
    names = DepositionOut.model_fields.keys() - computed.keys()
    return DepositionOut(**computed, **{name: getattr(row, name) for name in names})


def _file_out(url: str, file: DepositionFile) -> FileOut:
    names = FileOut.model_fields.keys() - {"url"}
    values = {name: getattr(file, name) for name in names}
    return FileOut(url=f"{url}/files/{file.pk}", **values)


def _problem(error: DepositionRefused, status: int, kind: str = "") -> Problem:
    return Problem(status, str(error), kind=kind, errors=[in_field(error.field, error.message)])
