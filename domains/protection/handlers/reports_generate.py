"""Generate the report of an account."""

from datetime import date
from typing import Any

from django.contrib.auth.models import User

from tailrace.db.query import database_now
from tailrace.domains.protection.handlers.account_handler import AccountHandler
from tailrace.domains.protection.services.reports import requests
from tailrace.domains.protection.services.reports.generate import AccountClosed, generate
from tailrace.domains.protection.services.reports.pdf import LibraryMissing, TooLarge
from tailrace.domains.protection.services.reports.period import (
    InvalidPeriod,
    Period,
    last_month,
    last_week,
)
from tailrace.jobs.handler import ClaimedJob, Permanent, Skip
from tailrace.subscriptions.models import PlanJob
from tailrace.subscriptions.plans.payload import AccountPayload
from tailrace.web.accounts.time_zones import zone_of


class GenerateReport(AccountHandler):
    """Generate an account's report: of the days in the payload, else of the last seven days or the
    last month, depending on its plan."""

    name = requests.HANDLER
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
