"""Rewrite the schedules of all subscriptions of a plan whose table was edited.

A job rewrites the schedules in pieces, in the order of the subscriptions' ids. `Plan.rewrite_after`
is the id of the last finished subscription, or null if all are finished. Another edit of the plan
resets it to 0.
"""

import time
from collections.abc import Sequence

from django.db import DEFAULT_DB_ALIAS as DATABASE
from django.db import transaction
from pydantic import BaseModel

from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import Backoff, ClaimedJob, Handler, Snooze
from tailrace.subscriptions.models import Plan, PlanSubscription
from tailrace.subscriptions.plans.row_locks import lock
from tailrace.subscriptions.plans.schedules import write_schedules

HANDLER = "subscriptions.rewrite_plan"
PIECE = 500
"""The number of subscriptions whose schedules are rewritten in one transaction."""
SECONDS = 20
"""A claim ends after this time, and the job is snoozed, so that the worker can run other jobs."""


class RewritePlan(Handler):
    """Rewrite the schedules of all subscriptions of a plan whose table was edited."""

    name = HANDLER
    batch_size = 1
    backoff = Backoff(10, 60, 300)

    class Payload(BaseModel):
        plan: int

    def handle(self, job: ClaimedJob) -> None:
        ends = time.monotonic() + SECONDS
        done = 0
        while count := rewrite_piece(job.payload.plan):
            done += count
            job.progress(done, note="subscriptions since the last start")
            job.check_cancelled()
            if time.monotonic() > ends or job.shutting_down():
                raise Snooze("continues with the next subscriptions", seconds=0.1)


def begin(plans: Sequence[int]) -> None:
    """Enqueue jobs that rewrite the schedules of these plans.

    Call it in the transaction that edits the plans' tables, before the edit: it locks the plans, so
    that no transaction reads the tables until the edit is committed.
    """
    Plan.objects.filter(pk__in=plans).update(rewrite_after=0)
    enqueue_for(plans)


def enqueue_for(plans: Sequence[int]) -> None:
    """Enqueue the jobs that rewrite these plans, unless they exist."""
    for plan in plans:
        enqueue(HANDLER, {"plan": plan}, unique_key=str(plan))


def rewrite_piece(plan: int) -> int:
    """Rewrite the schedules of the next PIECE subscriptions of the plan; return how many."""
    with transaction.atomic():
        plans = Plan.objects.using(DATABASE).filter(pk=plan).values_list("rewrite_after", flat=True)
        after = plans.first()
        if after is None:
            return 0
        rows = PlanSubscription.objects.using(DATABASE).filter(plan=plan, pk__gt=after)
        ids = list(rows.order_by("pk").values_list("pk", flat=True)[:PIECE])
        locked = [row for row in lock(ids) if row.plan_id == plan]
        # Always locked after the subscriptions, so that transactions cannot deadlock.
        if plans.select_for_update(no_key=True).first() != after:  # edited again, or by another job
            return 1
        write_schedules(locked)
        last = ids[-1] if len(ids) == PIECE else None
        Plan.objects.filter(pk=plan, rewrite_after=after).update(rewrite_after=last)
        return len(ids)
