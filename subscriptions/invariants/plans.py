"""Each subscription to a plan has exactly the schedules of its plan's table."""

from collections.abc import Iterator, Sequence

from django.db import DEFAULT_DB_ALIAS as DATABASE
from django.db import transaction
from django.db.models import Max, Min, QuerySet

from tailrace.db import clock
from tailrace.db.query import database_now, query
from tailrace.jobs.runtime.invariant import Invariant
from tailrace.subscriptions.models import PlanSubscription
from tailrace.subscriptions.plans import installed, rewrite, schedules, status
from tailrace.subscriptions.plans.row_locks import lock

BATCH = 1000
_PLANS_WITHOUT_JOB = """
SELECT p.id FROM tailrace_subscriptions_plan p
WHERE p.rewrite_after IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM tailrace_jobs_job j WHERE j.handler = %(handler)s AND j.unique_key = p.id::text
    AND j.state IN ('waiting', 'pending'))
AND NOT EXISTS (
  SELECT 1 FROM tailrace_jobs_job j WHERE j.handler = %(handler)s AND j.unique_key = p.id::text
    AND j.state = 'running')
LIMIT %(limit)s
"""
_SUBSCRIPTIONS_AFTER_GRACE = f"""
SELECT id FROM tailrace_subscriptions_plansubscription WHERE grace_until <= {clock.NOW}
ORDER BY grace_until LIMIT %(limit)s
"""


class PlanHandlersAreKnown(Invariant):
    """The flag `installed` of each job of a plan is correct."""

    name = "plans.handlers"
    every = 30
    advice = "a domain was installed or removed; the schedules of the plan are rewritten"

    def find(self) -> list[int]:
        return [job.pk for job in installed.outdated()[: self.limit]]

    def repair(self, violations: Sequence[int]) -> int:
        return installed.update()


class PlansAreRewritten(Invariant):
    """A plan whose table was edited has a job that rewrites its schedules."""

    name = "plans.rewrite"
    every = 60
    advice = f"the job is enqueued again; check the failed jobs of {rewrite.HANDLER}"

    def find(self) -> list[int]:
        plans = query(_PLANS_WITHOUT_JOB, handler=rewrite.HANDLER, limit=self.limit)
        return [plan for (plan,) in plans]

    def repair(self, violations: Sequence[int]) -> int:
        rewrite.enqueue_for(violations)
        return len(violations)


class GraceIsOver(Invariant):
    """A subscription that is past due has no schedules after its grace: the repair removes them."""

    name = "plans.grace"
    every = 60

    def find(self) -> list[int]:
        return [id for (id,) in query(_SUBSCRIPTIONS_AFTER_GRACE, limit=self.limit)]

    def repair(self, violations: Sequence[int]) -> int:
        return len(status.end_grace(violations).changed)


class _SchedulesOfPlan(Invariant):
    """Each violation is a subscription whose schedules have to be rewritten."""

    advice = "the schedules are rewritten; find out who changed or deleted them"

    def confirm(self, violations: Sequence[int]) -> list[int]:
        return _ids_with_wrong_schedules(_rows().filter(pk__in=violations))

    def repair(self, violations: Sequence[int]) -> int:
        with transaction.atomic():
            lock(violations)
            ids = set(_ids_with_wrong_schedules(_rows().filter(pk__in=violations)))
            schedules.write_schedules([row for row in lock(violations) if row.pk in ids])
        return len(ids)


class PlanSchedulesInTurn(_SchedulesOfPlan):
    """Each subscription to a plan has exactly its schedules. Each check examines one part of the
    subscriptions, all parts in turn."""

    name = "plans.schedules"
    every = 60

    def find(self) -> list[int]:
        first, last = self._turn()
        return _ids_with_wrong_schedules(_rows().filter(pk__gte=first, pk__lt=last))

    def _turn(self) -> tuple[int, int]:
        """Return the range [first, last) of the ids to check now, computed from the clock."""
        ends = PlanSubscription.objects.using(DATABASE).aggregate(low=Min("pk"), high=Max("pk"))
        if ends["low"] is None:
            return 0, 0
        turns = (ends["high"] - ends["low"]) // self.limit + 1
        turn = int(database_now().timestamp() // self.every) % turns
        first = ends["low"] + turn * self.limit
        return first, first + self.limit


class PlanSchedulesAll(_SchedulesOfPlan):
    """Each subscription to a plan has exactly its schedules. For `manage.py fsck`: all at once."""

    name = "plans.all_schedules"
    every = None
    in_batches = True

    def find(self) -> Iterator[int]:
        after = 0
        while ids := list(_rows().filter(pk__gt=after).values_list("pk", flat=True)[:BATCH]):
            yield from _ids_with_wrong_schedules(_rows().filter(pk__in=ids))
            after = ids[-1]


class PlanSchedulesHaveSubscription(Invariant):
    """Each schedule of a plan has a subscription."""

    name = "plans.schedules_without_subscription"
    every = None
    in_batches = True
    advice = "the schedules are deleted: their subscription was deleted directly in the database"

    def find(self) -> Iterator[str]:
        after = schedules.PREFIX
        while owners := schedules.owners_after(after, BATCH):
            yield from _without_subscription(owners)
            after = owners[-1]

    def confirm(self, violations: Sequence[str]) -> list[str]:
        return _without_subscription(violations)

    def repair(self, violations: Sequence[str]) -> int:
        return schedules.remove_of_owners(_without_subscription(violations))


def _rows() -> QuerySet[PlanSubscription]:
    return PlanSubscription.objects.using(DATABASE).order_by("pk")


def _ids_with_wrong_schedules(rows: QuerySet[PlanSubscription]) -> list[int]:
    # Not of plans whose schedules a job is rewriting.
    settled = rows.filter(plan__rewrite_after=None)
    return [row.pk for row in schedules.wrong(list(settled))]


def _without_subscription(owners: Sequence[str]) -> list[str]:
    by_id = {int(owner.removeprefix(schedules.PREFIX)): owner for owner in owners}
    existing = set(_rows().filter(pk__in=list(by_id)).values_list("pk", flat=True))
    return [owner for id, owner in by_id.items() if id not in existing]
