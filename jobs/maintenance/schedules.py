"""Create the job of each schedule's slot that is due, or record why none was created."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice, takewhile

from cronsim import CronSimError
from django.db import DEFAULT_DB_ALIAS as DATABASE
from django.db import transaction

from db import clock
from db.query import database_now, execute, query
from jobs import registry
from jobs.engine.insert import NewJob, insert_jobs
from jobs.handler import NO_LANE
from jobs.models import Job, Schedule, Slot
from jobs.states import LIVE

SLOTS_COUNTED = 2000
RECENT = timedelta(days=1)
"""After a very long absence this many slots are counted; then those of the last day are read."""
SLOTS_AT_ONCE = 100
"""Slots of one schedule that one run handles; older ones become one row."""
RETRY_INVALID = timedelta(hours=1)
"""When an invalid schedule is planned again."""
HANDLER_MISSING = "its handler is gone"
LATE = timedelta(minutes=1)
"""With catch_up = skip, a slot that is later than this is missed."""


@dataclass(slots=True)
class _Plan:
    """What becomes of the due slots of one schedule."""

    schedule: Schedule
    next_run_at: datetime
    slots: list[Slot] = field(default_factory=list)
    runs: list[datetime] = field(default_factory=list)

    def skip(self, slots: Iterable[datetime], outcome: str, reason: str) -> None:
        self.slots += [
            Slot(schedule=self.schedule, at=at, outcome=outcome, reason=reason) for at in slots
        ]


_DUE = f"SELECT EXISTS (SELECT 1 FROM jobs_schedule WHERE enabled AND next_run_at <= {clock.NOW})"


def run_due(limit: int = 500) -> int:
    """Create the jobs of the schedules that are due; return the number of schedules.

    The tick, which calls this, then wakes their queues.

    Any number of processes may do so at once: each locks the schedules that it works on.
    """
    [(due,)] = query(_DUE)
    if not due:
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
    return list(Schedule.objects.raw(statement, clock.params() | {"limit": limit}, using=DATABASE))


def _plan(schedules: Sequence[Schedule]) -> list[_Plan]:
    now = database_now()
    live = dict(
        Job.objects.using(DATABASE)
        .filter(schedule__in=schedules, state__in=LIVE)
        .values_list("schedule", "id")
    )
    return [_plan_one(schedule, now, live.get(schedule.pk)) for schedule in schedules]


def _plan_one(schedule: Schedule, now: datetime, live: int | None) -> _Plan:
    """Plan one schedule; one that is invalid gets a slot with the reason, and stops no other."""
    try:
        if schedule.catch_up == Schedule.CatchUp.ALL:
            return _run_all(schedule, now)
        return _run_newest(schedule, now, live)
    except (ValueError, KeyError, CronSimError) as error:
        reason = f"{schedule.cron!r} in {schedule.time_zone!r} is no schedule: {error}"
        plan = _Plan(schedule, next_run_at=now + RETRY_INVALID)
        plan.skip([schedule.next_run_at], "skipped", reason)
        return plan


def _run_all(schedule: Schedule, now: datetime) -> _Plan:
    """catch_up = all: run the oldest due slots, up to SLOTS_AT_ONCE; the next tick runs more."""
    slots = chain([schedule.next_run_at], schedule.slots_after(schedule.next_run_at))
    due = list(takewhile(lambda at: at <= now, islice(slots, SLOTS_AT_ONCE)))
    due = due or [schedule.next_run_at]
    plan = _Plan(schedule, next_run_at=schedule.slot_after(due[-1]))
    if registry.find(schedule.handler) is None:
        plan.skip(due, "skipped", HANDLER_MISSING)
    else:
        plan.runs += due
    return plan


def _run_newest(schedule: Schedule, now: datetime, live: int | None) -> _Plan:
    """catch_up = latest or skip: run one slot at most, and record what became of the others."""
    due, passed, next_run_at = _newest_slots(schedule, now)
    plan = _Plan(schedule, next_run_at=next_run_at)
    if passed:
        plan.skip([schedule.next_run_at], "missed", f"{passed} slots from here on")
    if registry.find(schedule.handler) is None:
        plan.skip(due, "skipped", HANDLER_MISSING)
    elif live is not None:
        plan.skip(due, "merged", f"job {live} is still live")
    elif schedule.catch_up == Schedule.CatchUp.SKIP:
        _skip_missed(plan, due, now)
    else:
        plan.skip(due[:-1], "merged", "a later slot runs for it")
        plan.runs.append(due[-1])
    return plan


def _skip_missed(plan: _Plan, due: list[datetime], now: datetime) -> None:
    on_time = due[-1] >= now - LATE
    missed = due[:-1] if on_time else due
    plan.skip(missed, "missed", "nothing ran at its time, and it is not caught up")
    if on_time:
        plan.runs.append(due[-1])


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


def _enqueue(plans: Sequence[_Plan]) -> None:
    jobs = [_new_job(plan.schedule, at) for plan in plans for at in plan.runs]
    ours = Job.objects.using(DATABASE).filter(pk__in=insert_jobs(jobs).ids)
    created = ours.values_list("schedule", "slot", "id")
    ids = {(schedule, slot): id for schedule, slot, id in created}
    slots = [slot for plan in plans for slot in plan.slots]
    slots += [
        Slot(schedule=plan.schedule, at=at, outcome="ran", job_id=ids.get((plan.schedule.pk, at)))
        for plan in plans
        for at in plan.runs
    ]
    Slot.objects.using(DATABASE).bulk_create(slots, ignore_conflicts=True)


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
    execute(
        """
        UPDATE jobs_schedule s SET next_run_at = n.at
        FROM unnest(%(ids)s::bigint[], %(times)s::timestamptz[]) AS n (id, at) WHERE s.id = n.id""",
        ids=[plan.schedule.pk for plan in plans],
        times=[plan.next_run_at for plan in plans],
    )
