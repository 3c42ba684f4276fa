"""Reports on request, with a limit per day."""

import hashlib

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from tailrace.db.clock import DAY_SECONDS
from tailrace.domains.protection.services.reports.period import Period
from tailrace.jobs.destinations.rate_limit import Bucket, take_from_all
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.models import Job
from tailrace.jobs.platform.requests import request_keys

HANDLER = "protection.reports_generate"


class TooManyReports(Exception):
    """The account has used up its reports of the day. `wait`: seconds until the next one."""

    def __init__(self, wait: float) -> None:
        super().__init__(f"{settings.PROTECTION_REPORTS_PER_DAY} reports a day can be requested")
        self.wait = wait


def request_report(user: User, period: Period, key: str = "") -> int:
    """Enqueue a job that makes the report; return the job's id. Requests with the same
    Idempotency-Key `key` are one request.

    Raises TooManyReports, or KeyReused or KeyInUse of `tailrace.jobs.platform.requests`.
    """
    days = {"first_day": str(period.first_day), "last_day": str(period.last_day)}
    days_text = ":".join(days.values())
    with transaction.atomic():  # a request that is refused leaves its key free
        if key:
            digest = hashlib.sha256(f"{HANDLER} {days_text}".encode()).hexdigest()
            known = request_keys.take(user.pk, key, digest)
            if known is not None:
                return known
        _take_from_limit(user)
        payload = {"account": user.pk, **days}
        job = enqueue(HANDLER, payload, unique_key=f"{user.pk}:{days_text}")
        if job is None:
            raise AssertionError("only the job of an event may be left out")
        if key:
            request_keys.set_job(user.pk, key, job)
    return job


def _take_from_limit(user: User) -> None:
    most = settings.PROTECTION_REPORTS_PER_DAY
    [taken] = take_from_all([Bucket(f"protection:reports:{user.pk}", most / DAY_SECONDS, most)])
    if taken.wait:
        raise TooManyReports(taken.wait)


def is_being_made(user: User) -> bool:
    """Return whether a job of the account makes a report, or will do so."""
    jobs = Job.objects.filter(handler=HANDLER, lane=str(user.pk))
    return any(jobs.filter(state=state).exists() for state in ("pending", "running"))
