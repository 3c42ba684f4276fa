"""Which handlers of plans are installed. Without its handler, a job of a plan has no schedules.

A domain may be installed after its plans were written, or removed. The truth is in the queues: the
processes of all versions share them while a new one is deployed.
"""

from django.db import DEFAULT_DB_ALIAS as DATABASE
from django.db import transaction

from tailrace.jobs.models import Queue
from tailrace.jobs.schedules import is_known, why_not
from tailrace.subscriptions.models import PlanJob
from tailrace.subscriptions.plans import rewrite
from tailrace.subscriptions.plans.payload import AccountPayload


def problem(handler: str) -> str:
    """Return why plans cannot have this handler, or an empty string. One that is not installed is
    no problem: its schedules are made when it is."""
    if not is_known(handler):
        return ""
    return why_not(handler, AccountPayload(account=1).model_dump())


def is_installed(handler: str) -> bool:
    """Whether there is a queue of this name in use, whose jobs take an account."""
    queues = Queue.objects.using(DATABASE).active()
    return queues.filter(name=handler).exists() and not problem(handler)


def outdated() -> list[PlanJob]:
    """Return the jobs of plans whose handler was installed or removed, for all this process knows:
    a handler that others have and it does not is theirs to find."""
    queues = Queue.objects.using(DATABASE).active()
    names = set(queues.values_list("name", flat=True))
    return [
        job
        for job in PlanJob.objects.using(DATABASE).order_by("pk")
        if job.installed != (job.handler in names and not problem(job.handler))
        and (job.handler not in names or is_known(job.handler))
    ]


def update() -> int:
    """Note which handlers are installed, and have the schedules of their plans rewritten; return
    how many jobs of plans changed."""
    with transaction.atomic():
        rows = outdated()
        if rows:
            rewrite.begin(sorted({row.plan_id for row in rows}))
        for row in rows:
            changed = PlanJob.objects.using(DATABASE).filter(pk=row.pk, installed=row.installed)
            changed.update(installed=not row.installed)
    return len(rows)
