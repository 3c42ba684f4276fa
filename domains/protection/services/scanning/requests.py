"""Scans on request: by the handlers of the user's plan, with a limit per day."""

from django.conf import settings
from django.db import transaction

from tailrace.db.clock import DAY_SECONDS
from tailrace.jobs.destinations.rate_limit import take_from_window
from tailrace.jobs.enqueue import enqueue_or_merge
from tailrace.jobs.operations.schedules import is_known
from tailrace.subscriptions.models import PlanJob, PlanSubscription

OURS = "protection."


class ScanRefused(Exception):
    """The scan was not requested; the message gives the reason."""


def request_scan(user_id: int, handler: str) -> int:
    """Enqueue the user's scan by this handler; return the id of its job.

    If a requested scan has not begun yet, its job is returned, and it counts once. Raises
    ScanRefused if the scan is not part of the user's plan, or PROTECTION_SCANS_PER_DAY is used up.
    """
    if handler not in {job.handler for job in scans_of(user_id)}:
        raise ScanRefused(f"Your plan does not include {handler[:60]!r}: choose one of its scans.")
    most = settings.PROTECTION_SCANS_PER_DAY
    with transaction.atomic():  # a scan that is refused leaves no job
        payload = {"account": user_id}
        id, is_new = enqueue_or_merge(handler, payload, unique_key=f"requested:{user_id}")
        name = f"protection-scans:{user_id}"
        if is_new and not take_from_window({name: 1}, most, DAY_SECONDS)[name]:
            raise ScanRefused(f"You requested {most} scans today, the maximum: try again tomorrow.")
    return id or 0


def scans_of(user_id: int) -> list[PlanJob]:
    """Return the jobs that the user may request: the jobs of their plan, if it is served."""
    subscription = PlanSubscription.objects.served().filter(account=user_id).first()
    if subscription is None:
        return []
    jobs = PlanJob.objects.filter(plan=subscription.plan_id, handler__startswith=OURS)
    return [job for job in jobs.filter(installed=True).order_by("pk") if is_known(job.handler)]
