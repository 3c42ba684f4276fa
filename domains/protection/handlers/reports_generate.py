"""Generate the report of an account."""

from datetime import date
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.template.loader import render_to_string

from tailrace.db.query import database_now
from tailrace.domains.protection.files import storage
from tailrace.domains.protection.handlers.account_handler import AccountHandler
from tailrace.domains.protection.models import Report, StoredFile
from tailrace.domains.protection.services.reports import pdf, requests
from tailrace.domains.protection.services.reports.pdf import LibraryMissing, TooLarge
from tailrace.domains.protection.services.reports.period import (
    InvalidPeriod,
    Period,
    last_month,
    last_week,
)
from tailrace.domains.protection.services.reports.section import Content
from tailrace.domains.protection.services.reports.sections import all_sections
from tailrace.jobs.handler import ClaimedJob, Permanent, Skip
from tailrace.subscriptions.models import PlanJob
from tailrace.subscriptions.plans.payload import AccountPayload
from tailrace.web.accounts.time_zones import zone_of
from tailrace.web.accounts.user_lock import locked

FOLDER = "reports"


class AccountClosed(Exception):
    """The account was closed while its report was generated."""


class GenerateReport(AccountHandler):
    """Generate an account's report: of the days in the payload, else of the last seven days or the
    last month, depending on its plan."""

    name = requests.HANDLER
    plan_title = "Report"
    time_limit = 180

    class Payload(AccountPayload):
        first_day: date | None = None
        last_day: date | None = None

    def handle(self, job: ClaimedJob) -> Any:
        user = User.objects.filter(pk=job.payload.account, is_active=True).first()
        if user is None:
            return Skip("the account does not exist or is closed")
        try:
            period = _period_of(user, job.payload)
            report = generate(user, period)
        except (InvalidPeriod, LibraryMissing, TooLarge) as error:
            raise Permanent(str(error)) from error
        except AccountClosed:
            return Skip("the account was closed while the report was generated")
        return {"report": report.pk, "bytes": report.file.size, "totals": report.totals}


def _period_of(user: User, payload: GenerateReport.Payload) -> Period:
    zone = zone_of(user)
    today = database_now().astimezone(zone).date()
    first_day, last_day = payload.first_day, payload.last_day
    if (first_day is None) != (last_day is None):
        raise InvalidPeriod("give both first_day and last_day, or neither")
    if first_day is not None and last_day is not None:
        return Period(first_day, last_day, zone).check(today)
    weekly = PlanJob.objects.filter(
        plan__subscriptions__account=user,
        handler=requests.HANDLER,
        frequency__in=[PlanJob.Frequency.WEEKLY, PlanJob.Frequency.DAILY],
    )
    return last_week(today, zone) if weekly.exists() else last_month(today, zone)


def generate(user: User, period: Period) -> Report:
    """Generate the account's report of these days: data ──► HTML ──► PDF ──► file ──►
    (one transaction) the row refers to the file, and a job deletes the earlier report's file."""
    contents = [section.collect(user.pk, period) for section in all_sections()]
    context = {
        "account": user.get_username(),
        "period": period,
        "contents": contents,
        "is_empty": not any(content.count for content in contents),
    }
    html = render_to_string("tailrace/protection/report/document.html", context)
    file = storage.write(FOLDER, pdf.to_pdf(html), ".pdf")
    return _replace(user, period, contents, file)


def _replace(user: User, period: Period, contents: list[Content], file: StoredFile) -> Report:
    """Let the report of the period refer to the new file, and release its old file."""
    days: dict[str, Any] = {"first_day": period.first_day, "last_day": period.last_day}
    values: dict[str, Any] = {
        "file": file,
        "time_zone": period.zone.key,
        "totals": {content.section.name: dict(content.totals) for content in contents},
        "is_cut": any(content.is_cut for content in contents),
        "generated_at": Now(),
    }
    with locked(user):
        if not User.objects.filter(pk=user.pk, is_active=True).exists():
            raise AccountClosed
        old_file = Report.objects.filter(user=user, **days).values_list("file", flat=True).first()
        report, _new = Report.objects.update_or_create(user=user, **days, defaults=values)
        storage.release([old_file])
        _delete_oldest(user)
    return report


def _delete_oldest(user: User) -> None:
    kept = settings.PROTECTION_MAX_REPORTS_PER_USER
    rows = Report.objects.filter(user=user).order_by("-generated_at", "-pk")
    oldest = [report.pk for report in rows[kept : kept + 100]]
    storage.delete_owners(Report.objects.filter(pk__in=oldest))
