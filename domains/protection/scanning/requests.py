"""Scans that a person requests: of the handlers of their plan, a few a day."""

from django.conf import settings
from django.db import transaction

from tailrace.jobs.destinations.rate_limit import take_from_window
from tailrace.jobs.enqueue import enqueue_or_merge
from tailrace.jobs.schedules import is_known
from tailrace.subscriptions.models import PlanJob, PlanSubscription

DAY = 86_400.0
OURS = "protection."


class ScanRefused(Exception):
    """The scan was not requested; the message says why."""


def request_scan(user_id: int, handler: str) -> int:
    """Have the user's scan by this handler begin soon; return the id of its job.

    A scan that was requested and has not begun is the same one, and counts once. ScanRefused if it
    is not part of their plan, or PROTECTION_SCANS_PER_DAY are used up.
    """
    if handler not in {job.handler for job in scans_of(user_id)}:
        raise ScanRefused(f"Your plan has no {handler[:60]!r}: see which scans it has.")
    most = settings.PROTECTION_SCANS_PER_DAY
    with transaction.atomic():  # a scan that is refused leaves no job
        payload = {"account": user_id}
        id, is_new = enqueue_or_merge(handler, payload, unique_key=f"requested:{user_id}")
        name = f"protection-scans:{user_id}"
        if is_new and not take_from_window({name: 1}, most, DAY)[name]:
            raise ScanRefused(f"You requested {most} scans today, the maximum: try again tomorrow.")
    return id or 0


def scans_of(user_id: int) -> list[PlanJob]:
    """Return the jobs that the user may request: those of a plan that is served."""
    subscription = PlanSubscription.objects.served().filter(account=user_id).first()
    if subscription is None:
        return []
    jobs = PlanJob.objects.filter(plan=subscription.plan_id, handler__startswith=OURS)
    return [job for job in jobs.filter(installed=True).order_by("pk") if is_known(job.handler)]
