"""schedules: each slot whose time has come becomes a job, or says why it did not."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice, takewhile

from cronsim import CronSimError
from django.db import connection, transaction

from events import clock
from jobs import registry, wake
from jobs.handler import NO_LANE
from jobs.insert import NewJob, insert_jobs
from jobs.models import Job, Schedule, Slot
from jobs.states import LIVE

SLOTS_COUNTED = 2000
RECENT = timedelta(days=1)
"""After a very long absence slots are counted so far, and then looked at from a day ago."""
SLOTS_AT_ONCE = 100
"""Slots of one schedule that are looked at in one run; older ones are one row in the ledger."""
RETRY_BROKEN = timedelta(hours=1)
LATE = timedelta(minutes=1)
"""With catch_up = skip, a slot that is later than this is missed."""


@dataclass(slots=True)
class _Plan:
    """What becomes of the due slots of one schedule."""

    schedule: Schedule
    next_run_at: datetime
    slots: list[Slot] = field(default_factory=list)
    runs: list[datetime] = field(default_factory=list)


_DUE = f"SELECT EXISTS (SELECT 1 FROM jobs_schedule WHERE enabled AND next_run_at <= {clock.NOW})"


def run_due(limit: int = 500) -> int:
    """Enqueue the jobs of schedules whose time has come; return how many schedules that were.

    Any number of beats may do so at once: a schedule is locked by the one that works on it.
    """
    with connection.cursor() as cursor:
        cursor.execute(_DUE, clock.params())
        if not cursor.fetchone()[0]:
            return 0
    with transaction.atomic():
        schedules = _lock_due(limit)
        plans = _plan(schedules)
        _enqueue(plans)
        _advance(plans)
    return len(schedules)


def _lock_due(limit: int) -> list[Schedule]:
    statement = f"""
        SELECT * FROM jobs_schedule WHERE enabled AND next_run_at <= {clock.NOW}
        ORDER BY next_run_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED"""
    return list(Schedule.objects.raw(statement, clock.params() | {"limit": limit}))


def _plan(schedules: Sequence[Schedule]) -> list[_Plan]:
    now = clock.now()
    live = dict(
        Job.objects.filter(schedule__in=schedules, state__in=LIVE).values_list("schedule", "id")
    )
    return [_plan_safely(schedule, now, live.get(schedule.pk)) for schedule in schedules]


def _plan_safely(schedule: Schedule, now: datetime, live: int | None) -> _Plan:
    """Plan one; a schedule that cannot be understood says so in its ledger and hinders no other."""
    try:
        return _plan_one(schedule, now, live)
    except (ValueError, KeyError, CronSimError) as error:
        reason = f"{schedule.cron!r} in {schedule.time_zone!r} is no schedule: {error}"
        slot = _slot(schedule, schedule.next_run_at, "skipped", reason)
        return _Plan(schedule, next_run_at=now + RETRY_BROKEN, slots=[slot])


def _plan_one(schedule: Schedule, now: datetime, live: int | None) -> _Plan:
    due, plan = _due_slots(schedule, now)
    if registry.find(schedule.handler) is None:
        plan.slots += [_slot(schedule, at, "skipped", "its handler is gone") for at in due]
    elif live is not None and schedule.catch_up != Schedule.CatchUp.ALL:
        plan.slots += [_slot(schedule, at, "merged", f"job {live} is still live") for at in due]
    elif schedule.catch_up == Schedule.CatchUp.ALL:
        plan.runs += due
    else:
        skip = schedule.catch_up == Schedule.CatchUp.SKIP
        plan.slots += [_earlier(schedule, at, skip) for at in due[:-1]]
        if skip and due[-1] < now - LATE:
            plan.slots.append(_earlier(schedule, due[-1], skip))
        else:
            plan.runs.append(due[-1])
    return plan


def _earlier(schedule: Schedule, at: datetime, skip: bool) -> Slot:
    if skip:
        return _slot(schedule, at, "missed", "nothing ran at its time, and it is not caught up")
    return _slot(schedule, at, "merged", "a later slot runs for it")


def _due_slots(schedule: Schedule, now: datetime) -> tuple[list[datetime], _Plan]:
    """Return the due slots to look at, and a plan that has the others as one row.

    Slots that are each to run are taken from the oldest on, and the rest later; of the others the
    newest count.
    """
    if schedule.catch_up == Schedule.CatchUp.ALL:
        first = chain([schedule.next_run_at], schedule.slots_after(schedule.next_run_at))
        due = list(takewhile(lambda at: at <= now, islice(first, SLOTS_AT_ONCE)))
        due = due or [schedule.next_run_at]
        return due, _Plan(schedule, next_run_at=schedule.slot_after(due[-1]))
    due, passed, next_run_at = _newest_slots(schedule, now)
    plan = _Plan(schedule, next_run_at=next_run_at)
    if passed:
        reason = f"{passed} slots from here on"
        plan.slots.append(_slot(schedule, schedule.next_run_at, "missed", reason))
    return due, plan


def _newest_slots(schedule: Schedule, now: datetime) -> tuple[list[datetime], str, datetime]:
    """Return the newest due slots, how many older ones there are, and the next slot."""
    start, passed = schedule.next_run_at, 0
    if schedule.every_seconds is not None:
        behind = int((now - start).total_seconds() // schedule.every_seconds)
        passed = max(behind - SLOTS_AT_ONCE, 0)
        start += timedelta(seconds=schedule.every_seconds * passed)
    due, more = [start], ""
    slots = schedule.slots_after(start)
    while (at := next(slots)) <= now:
        due.append(at)
        if len(due) >= SLOTS_COUNTED and not more and at < now - RECENT:
            more, slots = "more than ", schedule.slots_after(now - RECENT)
    passed += max(len(due) - SLOTS_AT_ONCE, 0)
    return due[-SLOTS_AT_ONCE:], f"{more}{passed}" if passed else "", at


def _slot(
    schedule: Schedule, at: datetime, outcome: str, reason: str = "", job_id: int | None = None
) -> Slot:
    return Slot(schedule=schedule, at=at, outcome=outcome, reason=reason, job_id=job_id)


def _enqueue(plans: Sequence[_Plan]) -> None:
    jobs = [_new_job(plan.schedule, at) for plan in plans for at in plan.runs]
    made = Job.objects.filter(pk__in=insert_jobs(jobs)).values_list("schedule", "slot", "id")
    ids = {(schedule, slot): id for schedule, slot, id in made}
    slots = [slot for plan in plans for slot in plan.slots]
    slots += [
        _slot(plan.schedule, at, "ran", job_id=ids.get((plan.schedule.pk, at)))
        for plan in plans
        for at in plan.runs
    ]
    Slot.objects.bulk_create(slots, ignore_conflicts=True)
    wake.on_commit({job.handler for job in jobs})


def _new_job(schedule: Schedule, at: datetime) -> NewJob:
    handler = registry.get(schedule.handler)
    return NewJob(
        handler=handler.name,
        routing_key=schedule.routing_key,
        payload=None if schedule.payload is None else json.dumps(schedule.payload),
        priority=handler.priority,
        lane=NO_LANE if handler.in_lanes() else "",
        schedule_id=schedule.pk,
        slot=at,
    )


def _advance(plans: Sequence[_Plan]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            UPDATE jobs_schedule s SET next_run_at = n.at
            FROM unnest(%s::bigint[], %s::timestamptz[]) AS n (id, at) WHERE s.id = n.id""",
            [[plan.schedule.pk for plan in plans], [plan.next_run_at for plan in plans]],
        )
