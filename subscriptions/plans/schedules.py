"""The schedules of subscriptions to plans: one per job in the plan's table, with the name
`plan:<subscription>:<handler>` and the owner `plan:<subscription>`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS as DATABASE
from django.db.models import QuerySet
from django.db.models.signals import post_delete
from django.dispatch import receiver

from tailrace.db.query import database_now, query
from tailrace.jobs.models import Schedule
from tailrace.jobs.operations.cancel import cancel_pending
from tailrace.jobs.operations.schedules import (
    NewSchedule,
    create_schedules,
    is_known,
    remove_schedules,
)
from tailrace.subscriptions.models import PlanJob, PlanSubscription
from tailrace.subscriptions.plans import last_runs, timing
from tailrace.subscriptions.plans.row_locks import share_plans

PREFIX = "plan:"
"""The prefix of the owners of all these schedules."""
SPREAD = timing.WINDOW_HOURS * 3600.0
DELETED = "the subscription to the plan was deleted"
_TIMING = ("cron", "time_zone", "spread")


@dataclass(frozen=True, slots=True)
class NextRun:
    """The next run of a job of a subscription."""

    job: PlanJob
    at: datetime


def write_schedules(subscriptions: Sequence[PlanSubscription]) -> None:
    """Create, update and remove the schedules of these locked subscriptions to match the plans.

    The waiting jobs of removed schedules are cancelled, and their last runs are kept. No job runs
    twice in a period.
    """
    share_plans({row.plan_id for row in subscriptions})
    expected = {new.name: new for new in _expected_schedules(subscriptions)}
    stored = {row.name: row for row in _stored(subscriptions).order_by("name").select_for_update()}
    _remove([row for name, row in stored.items() if name not in expected], "not part of the plan")
    different = [new for new in expected.values() if _differs(new, stored.get(new.name))]
    if different:
        now = database_now()
        by_owner = {owner_of(row.pk): row for row in subscriptions}
        create_schedules(
            _with_next_run(new, stored.get(new.name), by_owner[new.owner], now) for new in different
        )


def remove_schedules_for(subscriptions: Sequence[PlanSubscription], reason: str) -> None:
    """Remove the schedules of these locked subscriptions, and cancel their waiting jobs."""
    _remove(list(_stored(subscriptions).order_by("name").select_for_update()), reason)


def wrong(subscriptions: Sequence[PlanSubscription]) -> list[PlanSubscription]:
    """Return the subscriptions whose schedules do not match their plan."""
    expected = {new.name: new for new in _expected_schedules(subscriptions)}
    stored = {row.name: row for row in _stored(subscriptions)}
    owners = {new.owner for name, new in expected.items() if _differs(new, stored.get(name))}
    owners |= {row.owner for name, row in stored.items() if name not in expected}
    return [row for row in subscriptions if owner_of(row.pk) in owners]


def next_runs(subscription: PlanSubscription) -> list[NextRun]:
    """Return the next runs of a subscription's jobs, soonest first."""
    times = dict(_stored([subscription]).filter(enabled=True).values_list("handler", "next_run_at"))
    jobs = PlanJob.objects.filter(plan=subscription.plan_id, handler__in=times)
    runs = [NextRun(job, times[job.handler]) for job in jobs]
    return sorted(runs, key=lambda run: (run.at, run.job.handler))


@receiver(post_delete, sender=PlanSubscription, dispatch_uid="subscriptions.plan_schedules")
def _remove_after_delete(instance: PlanSubscription, **kwargs: Any) -> None:
    """Remove the schedules of a subscription when its row is deleted, e.g. with its account."""
    remove_schedules_for([instance], DELETED)


def owner_of(subscription: int) -> str:
    return f"{PREFIX}{subscription}"


_OWNERS = """
SELECT DISTINCT owner FROM (
  SELECT owner FROM tailrace_jobs_schedule WHERE owner ~>~ %(after)s AND owner ~<~ %(end)s
  ORDER BY owner USING ~<~ LIMIT %(limit)s) batch
"""


def owners_after(owner: str, limit: int) -> list[str]:
    """Return the owners of schedules of plans after `owner`, in byte order. Start with PREFIX."""
    rows = query(_OWNERS, after=owner, end=PREFIX + "\U0010ffff", limit=limit)
    return sorted((name for (name,) in rows), key=str.encode)


def remove_of_owners(owners: Iterable[str]) -> int:
    """Remove the schedules of owners whose subscription was deleted; return their number."""
    return sum(remove_schedules(owner=owner, reason=DELETED) for owner in owners)


def _expected_schedules(subscriptions: Sequence[PlanSubscription]) -> Iterator[NewSchedule]:
    """Yield the schedules that these subscriptions should have."""
    jobs: dict[int, list[PlanJob]] = {row.plan_id: [] for row in subscriptions}
    for job in PlanJob.objects.using(DATABASE).filter(plan__in=list(jobs), installed=True):
        jobs[job.plan_id].append(job)
    for row in subscriptions:
        for job in jobs[row.plan_id] if row.is_served else ():
            yield NewSchedule(
                name=f"{owner_of(row.pk)}:{job.handler}",
                handler=job.handler,
                payload={"account": row.account_id},
                cron=timing.cron_of(job.frequency, row.anchor_day),
                time_zone=row.time_zone,
                spread=SPREAD,
                owner=owner_of(row.pk),
            )


def _stored(subscriptions: Sequence[PlanSubscription]) -> QuerySet[Schedule]:
    owners = [owner_of(row.pk) for row in subscriptions]
    return Schedule.objects.using(DATABASE).filter(owner__in=owners)


def _differs(new: NewSchedule, old: Schedule | None) -> bool:
    """Return whether the schedule has to be written, by a process that knows the handler: during a
    deployment, processes of the old version do not know the handlers of a new domain."""
    same = (
        old is not None
        and all(getattr(old, name) == getattr(new, name) for name in _TIMING)
        and (old.payload or {}).items() >= dict(new.payload or {}).items()
    )
    return not same and is_known(new.handler)


def _with_next_run(
    new: NewSchedule, old: Schedule | None, subscription: PlanSubscription, now: datetime
) -> NewSchedule:
    last_run = last_runs.last_run(subscription, new.handler, old)
    schedule = Schedule(name=new.name, **{name: getattr(new, name) for name in _TIMING})
    due = None if old is None else old.next_run_at
    return replace(new, next_run_at=timing.next_run(schedule, now, last_run, due))


def _remove(rows: Sequence[Schedule], reason: str) -> None:
    """Remove these locked schedules, and cancel the accounts' pending jobs of their handlers,
    whoever created them. Then keep their last runs, which depend on cancelled jobs."""
    if rows:
        remove_schedules([row.name for row in rows], reason=reason)
        cancel_pending([(row.handler, _account_of(row)) for row in rows], reason)
        last_runs.keep([(int(row.owner.removeprefix(PREFIX)), row) for row in rows])


def _account_of(row: Schedule) -> dict[str, Any]:
    return {"account": (row.payload or {}).get("account")}
