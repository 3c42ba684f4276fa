"""Reports in the API: list, request, download."""

from datetime import date, datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from django.http import FileResponse, HttpRequest
from ninja import Query, Router, Status
from pydantic import Field

from tailrace.db.query import database_now
from tailrace.domains.protection.files import storage
from tailrace.domains.protection.models import Report
from tailrace.domains.protection.services.reports.period import DEFAULT_DAYS, InvalidPeriod, Period
from tailrace.domains.protection.services.reports.requests import TooManyReports, request_report
from tailrace.web.accounts.time_zones import zone_of
from tailrace.web.api.auth import Needs, caller
from tailrace.web.api.idempotency import KeyHeader, key_problems
from tailrace.web.api.pagination import Page, PageParams, newest_first
from tailrace.web.api.problems import find_row, not_found, too_many_requests, wrong_field
from tailrace.web.api.schemas import In, Out

READ, DOWNLOAD = Needs("protection:read"), Needs("protection:read", cost=2)
REQUEST = Needs("protection:write", cost=5)
Day = Annotated[date, Field(strict=False)]
router = Router()


class ReportIn(In):
    first_day: Day | None = None
    """Default: the report covers the 30 days up to the last day."""
    last_day: Day | None = None
    """Included. Default: today."""


class RequestedReportOut(Out):
    job: int
    """The job that makes the report. The report is listed when the job is completed."""
    first_day: date
    last_day: date


class ReportOut(Out):
    id: int
    first_day: date
    last_day: date
    time_zone: str
    generated_at: datetime
    bytes: int
    totals: dict[str, Any]
    """The numbers in the report, by section."""
    is_cut: Annotated[
        bool, Field(description="the tables of the report show only the newest lines")
    ]


@router.get("", auth=READ, response=Page[ReportOut], summary="List your reports")
def list_reports(request: HttpRequest, query: Query[PageParams]) -> Page[ReportOut]:
    """Newest first."""
    return newest_first(_reports_of_caller(request), query, _out)


@router.post("", auth=REQUEST, response={202: RequestedReportOut}, summary="Request a report")
def create_report(
    request: HttpRequest, body: ReportIn, idempotency_key: KeyHeader = None
) -> Status[RequestedReportOut]:
    """At most PROTECTION_REPORTS_PER_DAY a day. The report replaces an earlier one of the same
    days."""
    user = caller(request).user
    try:
        period = _period(body, zone_of(user))
        with key_problems():
            job = request_report(user, period, idempotency_key or "")
    except (InvalidPeriod, OverflowError) as error:
        raise wrong_field("first_day" if body.first_day else "last_day", str(error)) from None
    except TooManyReports as error:
        raise too_many_requests(str(error), error.wait) from None
    return Status(202, RequestedReportOut.of(period, job=job))


@router.get("/{int:id}", auth=READ, response=ReportOut, summary="Get one report")
def get_report(request: HttpRequest, id: int) -> ReportOut:
    return _out(find_row(_reports_of_caller(request), id, "report"))


@router.get("/{int:id}/file", auth=DOWNLOAD, response=None, summary="Download a report")
def download_report(request: HttpRequest, id: int) -> FileResponse:
    """The PDF."""
    report = find_row(_reports_of_caller(request), id, "report")
    return storage.download(report, not_found("report"), "application/pdf")


def _period(body: ReportIn, zone: ZoneInfo) -> Period:
    today = database_now().astimezone(zone).date()
    last_day = body.last_day or today
    first_day = body.first_day or last_day - timedelta(days=DEFAULT_DAYS - 1)
    return Period(first_day, last_day, zone).check(today)


def _reports_of_caller(request: HttpRequest) -> Any:
    return Report.objects.filter(user=caller(request).user).select_related("file")


def _out(row: Report) -> ReportOut:
    return ReportOut.of(row, bytes=row.file.size)
