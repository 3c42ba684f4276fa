"""Find the handlers of plans that are installed. A job of a plan has schedules only if its handler
is installed.

A domain may be installed after its plans were created, or removed. The table of queues decides,
since processes of the old and new version share it during a deployment.
"""

from django.db import DEFAULT_DB_ALIAS as DATABASE
from django.db import transaction

from tailrace.jobs.models import Queue
from tailrace.jobs.operations.schedules import is_known, why_not
from tailrace.subscriptions.models import PlanJob
from tailrace.subscriptions.plans import rewrite
from tailrace.subscriptions.plans.payload import AccountPayload


def problem(handler: str) -> str:
    """Return why plans cannot have this handler; empty if they can, or if it is not installed
    yet."""
    if not is_known(handler):
        return ""
    return why_not(handler, AccountPayload(account=1).model_dump())


def is_installed(handler: str) -> bool:
    """Return whether there is an active queue with this name, whose jobs take an account."""
    queues = Queue.objects.using(DATABASE).active()
    return queues.filter(name=handler).exists() and not problem(handler)


def outdated() -> list[PlanJob]:
    """Return the jobs of plans whose handler was installed or removed. A handler with a queue that
    this process does not know is left to processes that know it."""
    queues = Queue.objects.using(DATABASE).active()
    names = set(queues.values_list("name", flat=True))
    return [
        job
        for job in PlanJob.objects.using(DATABASE).order_by("pk")
        if job.installed != (job.handler in names and not problem(job.handler))
        and (job.handler not in names or is_known(job.handler))
    ]


def update() -> int:
    """Update `installed` of outdated jobs, have their plans rewritten, and return their number."""
    with transaction.atomic():
        rows = outdated()
        if rows:
            rewrite.begin(sorted({row.plan_id for row in rows}))
        for row in rows:
            changed = PlanJob.objects.using(DATABASE).filter(pk=row.pk, installed=row.installed)
            changed.update(installed=not row.installed)
    return len(rows)
