"""Reports that a person asks for: now, a few a day."""

from datetime import date

from django.conf import settings
from django.contrib.auth.models import User

from domains.protection.reports.period import Period
from jobs.destinations.rate_limit import Bucket, take_from_all
from jobs.enqueue import enqueue
from jobs.models import Job

HANDLER = "protection.reports_generate"
DAY_SECONDS = 86_400


class TooManyReports(Exception):
    """The account has had its reports of the day; `wait` is the seconds until the next one."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"{settings.PROTECTION_REPORTS_PER_DAY} reports a day are made on request")
        self.wait = wait


def request_report(user: User, period: Period) -> None:
    """Let a job make the report. Raises TooManyReports."""
    most = settings.PROTECTION_REPORTS_PER_DAY
    [taken] = take_from_all([Bucket(f"protection:reports:{user.pk}", most / DAY_SECONDS, most)])
    if taken.wait:
        raise TooManyReports(taken.wait)
    days = {"first_day": _text(period.first_day), "last_day": _text(period.last_day)}
    enqueue(
        HANDLER,
        {"account": user.pk, **days},
        lane=str(user.pk),
        unique_key=f"{user.pk}:{days['first_day']}:{days['last_day']}",
    )


def is_being_made(user: User) -> bool:
    """Return whether a job makes a report of the account, or is about to."""
    jobs = Job.objects.filter(handler=HANDLER, lane=str(user.pk))
    return any(jobs.filter(state=state).exists() for state in ("pending", "running"))


def _text(day: date) -> str:
    return day.isoformat()
