"""Sources in the API: list, add, change, try, pull, pause."""

from collections.abc import Mapping

from django.conf import settings
from django.http import HttpRequest
from ninja import Query, Router, Status

from tailrace.domains.records.api.schemas import (
    PullOut,
    SourceChangeIn,
    SourceIn,
    SourceOut,
    SourceTrialIn,
)
from tailrace.domains.records.models import Source
from tailrace.domains.records.sources.requests import NotActive
from tailrace.domains.records.sources.upkeep import changes, trial
from tailrace.domains.records.sources.upkeep.changes import ADD, CHANGE, VIEW
from tailrace.domains.records.sources.upkeep.status import SourceStatus, statuses
from tailrace.net.url_secrets import shown_url
from tailrace.web.api.auth import Caller, Needs, caller, permission_missing
from tailrace.web.api.faults import in_body
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import Problem, busy, find_row, of_faults

READ = Needs("records:read_sources", VIEW)
LIST = Needs("records:read_sources", VIEW, cost=5)
MAKE = Needs("records:write_sources", VIEW, ADD)
WRITE = Needs("records:write_sources", VIEW, CHANGE)
TRY = Needs("records:write_sources", VIEW, cost=trial.COST)
router = Router()


@router.get("", auth=LIST, response=Page[SourceOut], summary="List the sources")
def list_sources(request: HttpRequest, query: Query[PageParams]) -> Page[SourceOut]:
    """Returns the sources, newest first. The call counts as five requests."""
    page = newest_first(Source.objects.all(), query, lambda row: row)
    items = [_status_out(status, caller(request)) for status in statuses(page.items)]
    return Page(items=items, next=page.next)


@router.post("", auth=MAKE, response={201: SourceOut}, summary="Add a source")
def make_source(request: HttpRequest, body: SourceIn) -> Status[SourceOut]:
    """The source is read when its cron expression says so. To read it now, pull it."""
    try:
        values = body.model_dump(exclude={"address"})
        row = changes.create_source(caller(request).user, url=body.address, **values)
    except changes.InvalidSource as error:
        raise _invalid(error.problems) from None
    except changes.TooManySources as error:
        raise Problem(409, str(error), kind="too-many") from None
    return Status(201, _source_out(request, row))


@router.post("/try", auth=TRY, response=trial.TrialOut, summary="Try a source")
def try_source(request: HttpRequest, body: SourceTrialIn) -> trial.TrialOut:
    """Reads the first page of a source and returns the records that would be deposited.

    Nothing is stored. You need the permission to add or to change sources. The call takes up to 20
    seconds and counts as 20 requests.
    """
    by = caller(request)
    if not (by.may(ADD) or by.may(CHANGE)):
        raise permission_missing(by.user, ADD)
    try:
        return trial.try_source(body.name, body.kind, body.address, body.settings)
    except changes.InvalidSource as error:
        raise _invalid(error.problems) from None
    except trial.TooManyTrials as error:
        raise busy(error, seconds=10) from None


@router.get("/{int:id}", auth=READ, response=SourceOut, summary="Get one source")
def get_source(request: HttpRequest, id: int) -> SourceOut:
    return _source_out(request, _row(id))


@router.patch("/{int:id}", auth=WRITE, response=SourceOut, summary="Change a source")
def change_source(request: HttpRequest, id: int, body: SourceChangeIn) -> SourceOut:
    """Fields that you leave out are not changed. If the format, the address or the settings change,
    the source is read from the beginning. `is_active: false` pauses the source."""
    values = {name: value for name, value in body if value is not None}
    if "address" in values:
        values["url"] = values.pop("address")
    try:
        row = changes.change_source(_row(id).pk, caller(request).user, **values)
        return _source_out(request, row)
    except changes.InvalidSource as error:
        raise _invalid(error.problems) from None


@router.post("/{int:id}/pull", auth=WRITE, response={202: PullOut}, summary="Pull a source now")
def pull_source(request: HttpRequest, id: int) -> Status[PullOut]:
    """Returns 409 if the source is paused."""
    try:
        return Status(202, PullOut(event=changes.pull_now(_row(id).pk, caller(request).user)))
    except NotActive as error:
        raise Problem(409, str(error)) from None


@router.post(
    "/{int:id}/restart", auth=WRITE, response={202: PullOut}, summary="Read a source from the start"
)
def restart_source(request: HttpRequest, id: int) -> Status[PullOut]:
    """Reads all records of the source again, now. Unchanged records get no new version."""
    try:
        return Status(202, PullOut(event=changes.start_over(_row(id).pk, caller(request).user)))
    except NotActive as error:
        raise Problem(409, str(error)) from None


@router.post("/{int:id}/pause", auth=WRITE, response=SourceOut, summary="Pause a source")
def pause_source(request: HttpRequest, id: int) -> SourceOut:
    """A page that is being read is not stored."""
    return _source_out(request, changes.set_active(_row(id).pk, caller(request).user, False))


@router.post("/{int:id}/resume", auth=WRITE, response=SourceOut, summary="Resume a source")
def resume_source(request: HttpRequest, id: int) -> SourceOut:
    """The source is read at its regular times again, from its cursor."""
    return _source_out(request, changes.set_active(_row(id).pk, caller(request).user, True))


def _row(id: int) -> Source:
    return find_row(Source.objects.all(), id, "source")


def _source_out(request: HttpRequest, row: Source) -> SourceOut:
    [status] = statuses([row])
    return _status_out(status, caller(request))


def _status_out(status: SourceStatus, by: Caller) -> SourceOut:
    """Return a source. The address has its secrets only if the caller may change sources."""
    row = status.source
    return SourceOut.of(
        row,
        url=f"{settings.PUBLIC_URL}/api/records/sources/{row.pk}",
        address=row.url if by.may(CHANGE) else shown_url(row.url),
        next_pull_at=status.next_pull_at,
        late_seconds=status.late_seconds,
        depositions=status.depositions,
    )


def _invalid(problems: Mapping[str, str]) -> Problem:
    names = {"url": "address"}
    return of_faults(
        [in_body(message, names.get(field, field)) for field, message in problems.items()]
    )
