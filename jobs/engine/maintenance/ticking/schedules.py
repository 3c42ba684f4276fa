"""Create the jobs of due slots of schedules, or record why no job was created.

Due schedules are found by an index, so other schedules cost nothing. They are processed in pieces.
A piece is one transaction with a fixed number of statements. It locks its schedules, and skips
schedules that another process has locked. If the process ends in the middle of a piece, the piece
is rolled back.
"""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice, takewhile

from django.db import transaction

from tailrace.db import clock
from tailrace.db.engine_database import home
from tailrace.db.query import database_now, execute, query
from tailrace.db.sql.arrays import arrays, number_array, text_array
from tailrace.db.sql.plans import probe
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.inserting.insert import insert_jobs
from tailrace.jobs.engine.inserting.new_job import NewJob
from tailrace.jobs.models import Queue, Schedule

SECONDS = 0.8
"""How long one call of `work_off` should take at most; the next tick continues."""
PIECE_SECONDS = 0.3
"""How long a piece should take."""
FIRST_PIECE, LARGEST_PIECE = 100, 1000
"""The number of schedules in the first piece, and in the largest one."""
MOST_GROWTH = 4
"""A piece has at most this many times the schedules of the previous piece."""
PLAN_SECONDS = 0.3
SLOTS_PER_PIECE = 2000
"""A piece ends after this time or this number of slots; the other schedules stay due."""
SLOTS_COUNTED, RECENT = 2000, timedelta(days=1)
"""After a very long absence, this many slots are counted; then only slots of this time are read."""
SLOTS_AT_ONCE = 100
"""Slots of one schedule that one piece handles; older slots are recorded as one row."""
RETRY_INVALID = timedelta(hours=1)
"""When an invalid schedule is planned again."""
UNKNOWN_HANDLER_SECONDS = 600
"""How long a slot is left to workers with newer code, if this code does not have its handler and
its queue was not retired."""
HANDLER_MISSING = "its handler was removed"
HANDLER_UNKNOWN = (
    f"no worker had its handler for {UNKNOWN_HANDLER_SECONDS // 60} minutes: run `manage.py "
    "migrate` with the code that has the handler, and start workers with that code"
)
NO_CATCH_UP = "no process was running at this time, and the schedule does not catch up"
LATE = timedelta(minutes=1)
"""With catch_up = skip, a slot is missed if it is later than this."""


def work_off() -> int:
    """Process the due schedules, piece by piece, until none is left or the time is over; return
    the number of schedules. The tick, which calls this, then wakes their queues."""
    until, total, size = time.monotonic() + SECONDS, 0, FIRST_PIECE
    while size:
        began = time.monotonic()
        count = run_due(size)
        total += count
        now = time.monotonic()
        size = next_size(count, now - began, until - now)
    return total


def next_size(count: int, took: float, left: float) -> int:
    """Return how many schedules the next piece may have, after a piece of `count` schedules in
    `took` seconds; 0 to stop. `left` seconds remain."""
    seconds = max(min(PIECE_SECONDS, left), 0.0)
    return min(int(seconds / max(took, 1e-6) * count), MOST_GROWTH * count, LARGEST_PIECE)


FOR_THIS_CODE = f"""
(handler = ANY(%(known)s)
 OR next_run_at <= {clock.NOW} - interval '{UNKNOWN_HANDLER_SECONDS} seconds'
 OR EXISTS (SELECT 1 FROM tailrace_jobs_queue q WHERE q.name = handler
   AND q.retired_at IS NOT NULL))
"""
"""SQL: whether this code processes a schedule; other schedules are left to newer code."""

# ORDER BY matches the index: a planner without statistics assumes that a third of the schedules is
# due, and would read the whole table to find one.
_DUE = f"""
SELECT 1 FROM tailrace_jobs_schedule
WHERE enabled AND next_run_at <= {clock.NOW} AND {FOR_THIS_CODE}
ORDER BY next_run_at LIMIT 1
"""


def run_due(limit: int = LARGEST_PIECE) -> int:
    """Process one piece of at most `limit` schedules; return how many were due."""
    if not query(_DUE, known=list(registry.all_handlers())):
        return 0
    with transaction.atomic(using=home()):
        query(_BY_INDEX)
        now = database_now()
        plans = _plan(_lock_due(now, limit), now)
        if plans:
            _enqueue(plans)
            _advance(plans)
    return len(plans)


# Makes the planner use indexes for the rest of the transaction, even without statistics.
_BY_INDEX = "SELECT " + ", ".join(
    f"set_config('{name}', 'off', true)"
    for name in (
        "enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit",
    )
)  # fmt: skip

_LOCK_DUE = f"""
SELECT id, name, handler, routing_key, payload, every_seconds, cron, time_zone, spread, catch_up,
       next_run_at
FROM tailrace_jobs_schedule WHERE enabled AND next_run_at <= %(now)s AND {FOR_THIS_CODE}
ORDER BY next_run_at LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""


def _lock_due(now: datetime, limit: int) -> list[Schedule]:
    known = list(registry.all_handlers())
    params = {"now": now, "limit": limit, "known": known, "clock": clock.offset}
    return list(Schedule.objects.raw(_LOCK_DUE, params, using=home()))


@dataclass(slots=True)
class _Slot:
    """A row of tailrace_jobs_slot."""

    schedule: int
    at: datetime
    outcome: str
    reason: str = ""
    job: int | None = None


@dataclass(slots=True)
class _Plan:
    """The outcomes of the due slots of one schedule."""

    schedule: Schedule
    next_run_at: datetime
    slots: list[_Slot] = field(default_factory=list)
    """Slots that get no job."""
    jobs: list[NewJob] = field(default_factory=list)
    """The jobs of the slots that run."""

    def skip(self, slots: Iterable[datetime], outcome: str, reason: str) -> None:
        self.slots += [_Slot(self.schedule.pk, at, outcome, reason) for at in slots]

    def run(self, slots: Iterable[datetime]) -> None:
        self.jobs += [_new_job(self.schedule, at) for at in slots]


_LIVE_JOBS = """
SELECT s.id, (SELECT j.id FROM tailrace_jobs_live j WHERE j.schedule_id = s.id
                AND j.schedule_id IS NOT NULL
                AND j.state IN ('waiting', 'pending', 'running') LIMIT 1)
FROM unnest(%(ids)s::bigint[]) AS s (id)
"""


def _plan(schedules: Sequence[Schedule], now: datetime) -> list[_Plan]:
    """Plan these schedules in their order, as many as fit into a piece."""
    live = dict(query(_LIVE_JOBS, ids=[schedule.pk for schedule in schedules]))
    missing = _missing_handlers({schedule.handler for schedule in schedules})
    plans, slots, until = list[_Plan](), 0, time.monotonic() + PLAN_SECONDS
    for schedule in schedules:
        plan = _plan_one(schedule, now, live[schedule.pk], missing.get(schedule.handler, ""))
        plans.append(plan)
        slots += len(plan.slots) + len(plan.jobs)
        if slots >= SLOTS_PER_PIECE or time.monotonic() > until:
            break
    return plans


def _missing_handlers(names: set[str]) -> dict[str, str]:
    """Return the reasons why the slots of missing handlers are skipped, by name."""
    unknown = names - registry.all_handlers().keys()
    if not unknown:
        return {}
    rows = Queue.objects.using(home()).filter(name__in=unknown, retired_at__isnull=False)
    retired = set(rows.values_list("name", flat=True))
    return {name: HANDLER_MISSING if name in retired else HANDLER_UNKNOWN for name in unknown}


def _plan_one(schedule: Schedule, now: datetime, live: int | None, missing: str) -> _Plan:
    """Plan one schedule; an invalid schedule gets a skipped slot with the reason. `live` is the id
    of its unfinished job; `missing` is the reason to skip its slots if its handler is missing."""
    if missing == HANDLER_UNKNOWN:
        now -= timedelta(seconds=UNKNOWN_HANDLER_SECONDS)
    try:
        if schedule.catch_up == Schedule.CatchUp.ALL:
            return _run_all(schedule, now, missing)
        return _run_newest(schedule, now, live, missing)
    except (ValueError, OverflowError) as error:
        plan = _Plan(schedule, next_run_at=now + RETRY_INVALID)
        plan.skip([schedule.next_run_at], "skipped", f"invalid schedule: {error}")
        return plan


def _run_all(schedule: Schedule, now: datetime, missing: str) -> _Plan:
    """catch_up = all: run the oldest due slots, up to SLOTS_AT_ONCE; the next tick continues."""
    slots = chain([schedule.next_run_at], schedule.slots_after(schedule.next_run_at))
    due = list(takewhile(lambda at: at <= now, islice(slots, SLOTS_AT_ONCE)))
    due = due or [schedule.next_run_at]
    plan = _Plan(schedule, next_run_at=schedule.slot_after(due[-1]))
    if missing:
        plan.skip(due, "skipped", missing)
    else:
        plan.run(due)
    return plan


def _run_newest(schedule: Schedule, now: datetime, live: int | None, missing: str) -> _Plan:
    """catch_up = latest or skip: run one slot at most, and record the outcomes of the others."""
    due, passed, next_run_at = _newest_slots(schedule, now)
    plan = _Plan(schedule, next_run_at=next_run_at)
    if passed:
        plan.skip([schedule.next_run_at], "missed", f"{passed} slots from this time on")
    if missing:
        plan.skip(due, "skipped", missing)
    elif live is not None:
        plan.skip(due, "merged", f"job {live} is not finished yet")
    elif schedule.catch_up == Schedule.CatchUp.SKIP:
        missed = len(due) - (due[-1] >= now - LATE)
        plan.skip(due[:missed], "missed", NO_CATCH_UP)
        plan.run(due[missed:])
    else:
        plan.skip(due[:-1], "merged", "merged into a later slot")
        plan.run(due[-1:])
    return plan


def _newest_slots(schedule: Schedule, now: datetime) -> tuple[list[datetime], str, datetime]:
    """Return the newest due slots, the number of older ones (text, may be empty), the next slot."""
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


# Slots that are recorded already, because the database's clock was set back or the row was changed
# by hand. They do not run again.
_RECORDED = f"""
SELECT n.schedule, n.at FROM unnest(%(schedule_id)s::bigint[], %(slot)s::timestamptz[])
  AS n (schedule, at)
JOIN tailrace_jobs_slot s ON {probe("s.schedule_id", "n.schedule")} AND {probe("s.at", "n.at")}
"""
_CREATED = """
SELECT j.schedule_id, j.slot, j.id
FROM unnest(%(ids)s::bigint[]) AS n (id) JOIN tailrace_jobs_live j ON j.id = n.id
"""
_RECORD = f"""
INSERT INTO tailrace_jobs_slot (schedule_id, at, outcome, reason, job_id, recorded_at)
SELECT schedule, at, outcome, reason, job, {clock.NOW}
FROM unnest(%(schedule)s::bigint[], %(at)s::timestamptz[], %(outcome)s::text[],
            %(reason)s::text[], %(job)s::bigint[]) AS n (schedule, at, outcome, reason, job)
ON CONFLICT (schedule_id, at) DO NOTHING
"""


def _enqueue(plans: Sequence[_Plan]) -> None:
    jobs = [job for plan in plans for job in plan.jobs]
    recorded = set(query(_RECORDED, **arrays(jobs, ("schedule_id", "slot"), ("schedule_id",))))
    jobs = [job for job in jobs if (job.schedule_id, job.slot) not in recorded]
    created = query(_CREATED, ids=insert_jobs(jobs).ids) if jobs else []
    slots = [slot for plan in plans for slot in plan.slots]
    slots += [_Slot(schedule, at, "ran", job=id) for schedule, at, id in created]
    columns = ("schedule", "at", "outcome", "reason", "job")
    execute(_RECORD, **arrays(slots, columns, ("schedule", "job")))


def _new_job(schedule: Schedule, at: datetime) -> NewJob:
    handler = registry.get(schedule.handler)
    payload = None if schedule.payload is None else json.dumps(schedule.payload)
    lane = handler.lane_without_event(payload)
    return NewJob(
        handler.name, None, schedule.routing_key, payload, priority=handler.priority, lane=lane,
        schedule_id=schedule.pk, slot=at,
    )  # fmt: skip


_ADVANCE = f"""
UPDATE tailrace_jobs_schedule s
SET next_run_at = n.at, last_run_at = coalesce(n.last_run_at, s.last_run_at)
FROM unnest(%(ids)s::bigint[], %(times)s::timestamptz[], %(runs)s::timestamptz[])
  AS n (id, at, last_run_at)
WHERE {probe("s.id", "n.id")}
"""


def _advance(plans: Sequence[_Plan]) -> None:
    execute(
        _ADVANCE,
        ids=number_array(plan.schedule.pk for plan in plans),
        times=text_array(plan.next_run_at for plan in plans),
        runs=text_array(
            max((job.slot for job in plan.jobs if job.slot), default=None) for plan in plans
        ),
    )
