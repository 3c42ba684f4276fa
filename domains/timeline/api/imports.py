"""Imports in the API: upload, list, show, promote, cancel, undo."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router, Status

from tailrace.domains.timeline.api.schemas import ImportOut
from tailrace.domains.timeline.imports import decisions
from tailrace.domains.timeline.imports.receive import receive
from tailrace.domains.timeline.models import Import
from tailrace.domains.timeline.upload_paths import HISTORIES
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import Problem, find_row, wrong_field
from tailrace.web.api.requests import request_body
from tailrace.web.uploads.api import one_file, openapi_body, upload_problems
from tailrace.web.uploads.limits import UPLOAD_COST

READ = Needs("timeline:read")
WRITE = Needs("timeline:import")
UPLOAD = Needs(
    "timeline:import",
    files=HISTORIES,
    cost=UPLOAD_COST,
)
FORM = {
    "type": "object",
    "properties": {
        "file": {
            "type": "string",
            "format": "binary",
            "description": "a location history, at most IMPORT_MAX_MEGABYTES",
        },
        "device": {"type": "string", "description": "name of the device; empty: `default`"},
        "one_device": {
            "type": "boolean",
            "default": False,
            "description": "all points are points of this device; otherwise, if the file tells"
            " several devices apart (`deviceTag` in Records.json), each gets an import of its own",
        },
    },
    "required": ["file"],
}
router = Router()


@router.post(
    "",
    auth=UPLOAD,
    response={202: ImportOut},
    summary="Import a file of points",
    openapi_extra=openapi_body(FORM),
)
def create_import(request: HttpRequest) -> Status[ImportOut]:
    """Send the file as `multipart/form-data`. A job parses it; get the import to see its progress.

    A parsed import is promoted after IMPORT_GRACE_SECONDS. Until then you can cancel it.
    """
    file = one_file(request)
    device = request.POST.get("device", "")
    request_body.check_storable(device, "device")
    with upload_problems():
        row = receive(
            caller(request).user, file, file.size or 0, file.name or "", device,
            one_device=_boolean(request, "one_device"),
        )  # fmt: skip
    return Status(202, import_out(row))


@router.get("", auth=READ, response=Page[ImportOut], summary="List your imports")
def list_imports(request: HttpRequest, query: Query[PageParams]) -> Page[ImportOut]:
    """Newest first."""
    rows = Import.objects.filter(user=caller(request).user).select_related("device")
    return newest_first(rows, query, import_out)


@router.get("/{int:id}", auth=READ, response=ImportOut, summary="Get one import")
def get_import(request: HttpRequest, id: int) -> ImportOut:
    return import_out(_own_import(request, id))


@router.post("/{int:id}/promote", auth=WRITE, response=ImportOut, summary="Promote an import now")
def promote_import(request: HttpRequest, id: int) -> ImportOut:
    """Ends the grace of the import, or accepts the readable part of a broken file."""
    return _decide(request, id, decisions.promote_now)


@router.post("/{int:id}/cancel", auth=WRITE, response=ImportOut, summary="Cancel an import")
def cancel_import(request: HttpRequest, id: int) -> ImportOut:
    """No point of the import reaches the timeline. Fails once the promotion has begun."""
    return _decide(request, id, decisions.cancel)


@router.post("/{int:id}/undo", auth=WRITE, response=ImportOut, summary="Undo an import")
def undo_import(request: HttpRequest, id: int) -> ImportOut:
    """Removes the points that only this import has. Points that another import of the device has,
    too, or that the device itself sent, stay. Possible within IMPORT_UNDO_DAYS."""
    return _decide(request, id, decisions.undo)


def _boolean(request: HttpRequest, name: str) -> bool:
    text = request.POST.get(name, "false")
    if text not in ("true", "false"):
        raise wrong_field(name, "must be true or false")
    return text == "true"


def import_out(row: Import) -> ImportOut:
    return ImportOut.of(
        row,
        url=f"{settings.PUBLIC_URL}/api/imports/{row.pk}",
        device=row.device_label,
        tag=row.tags.get("only", ""),
        part_of=row.part_of_id,
        rejected_by_reason=row.tally.get("rejected", {}),
        first_rejected=row.tally.get("first_rejected", []),
    )


def _own_import(request: HttpRequest, id: int) -> Import:
    rows = Import.objects.filter(user=caller(request).user).select_related("device")
    return find_row(rows, id, "import")


def _decide(request: HttpRequest, id: int, decide: Callable[[int], Import]) -> ImportOut:
    try:
        return import_out(decide(_own_import(request, id).pk))
    except decisions.NotNow as error:
        raise Problem(409, str(error)) from None
