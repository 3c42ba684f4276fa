"""Stored state that fsck finds, one case for each check, and how to run fsck."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from io import StringIO
from typing import Any

from django.db import connection

from tailrace.db import clock as events_clock
from tailrace.events.management.subcommands import call_subcommand
from tailrace.events.models import Event
from tailrace.events.publish import NewEvent, publish
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.flows import NewFlow
from tailrace.jobs.flows.operations import pause_flow
from tailrace.jobs.models import Attempt, Flow, Job, Queue, Schedule, Slot
from tests.kit import change_queue, claimed
from tests.sandbox.event_types import Happened
from tests.sandbox.handlers import Other, Working

GONE = "test.gone"


def fsck(*arguments: str) -> tuple[int, str]:
    """Run it without a pause; return its exit status and what it wrote."""
    out = StringIO()
    try:
        call_subcommand("fsck", *arguments, "--pause", "0", stdout=out)
    except SystemExit as ended:
        return int(ended.code or 0), out.getvalue()
    return 0, out.getvalue()


def report(*arguments: str) -> dict[str, Any]:
    """Return, by kind, what was found."""
    reports = json.loads(fsck("--json", *arguments)[1])
    return {kind["kind"]: kind for kind in reports["kinds"] if kind["found"]}


def sql(statement: str, *params: Any) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, params)
        return cursor.fetchone()[0] if cursor.description else None


def change(id: int | None, **fields: Any) -> int:
    """Write into a job's row what no code of ours would."""
    assert id is not None
    assert not fields or Job.objects.filter(pk=id).update(**fields) == 1
    return id


def ago(seconds: float) -> Any:
    return events_clock.now() - timedelta(seconds=seconds)


def running_job(**fields: Any) -> int:
    id = enqueue(Working)
    assert claimed("test.work")
    return change(id, **fields)


def job_without_lane() -> int:
    change_queue("test.fair", drained_at=ago(1))
    return change(enqueue(Working), handler="test.fair", due_at=ago(200))


def finished_job(**fields: Any) -> int:
    return change(enqueue(Working), state="completed", finished_at=ago(10), **fields)


def waiting_job(parent: int | None, **fields: Any) -> int:
    return change(enqueue(Other), state="waiting", after_id=parent, **fields)


def waiting_for_finished_job() -> int:
    parent = enqueue(Working)
    child = enqueue(Other, after=parent)
    change(parent, state="completed", finished_at=ago(300))
    return change(child)


def attempt(job: int, claim_no: int) -> int:
    return Attempt.objects.create(job_id=job, claim_no=claim_no, outcome="retried").pk


def jobs_in_circle() -> int:
    first = waiting_job(None)
    return change(first, after_id=waiting_job(first))


def new_flow(**options: Any) -> NewFlow:
    """Enqueue a flow of two jobs and a callback after both."""
    flow = NewFlow("broken", **options)
    flow.add(Other, after=[flow.add(Working), flow.add(Working)], name="callback")
    flow.enqueue()
    return flow


def overdue_flow() -> int:
    flow = new_flow(deadline=timedelta(hours=1))
    assert Flow.objects.filter(pk=flow.id).update(deadline_at=ago(60))
    return Flow.objects.get().pk


def job_of_paused_flow() -> int:
    flow = new_flow()
    pause_flow(Flow.objects.get(), "me")
    return change(flow.jobs["work"].id, state="pending")


def job_without_flow() -> int:
    return change(enqueue(Working), flow_id=10**9, flow_name="stray")


def callback_twice() -> int:
    id = new_flow().id
    change(enqueue(Other), flow_id=id, flow_name="callback")
    return Flow.objects.get().pk


def waiting_for_stranger() -> int:
    return change(new_flow().jobs["callback"].id, after_id=enqueue(Working))


def event_without_jobs() -> list[Any]:
    return event_without_job("test.log")


def event_without_job(name: str, tag: str = "") -> list[Any]:
    """Two events a minute old, the younger of which has lost its job of this handler."""
    payload = {"who": "w", "tags": [tag] if tag else []}
    _older, younger = publish([NewEvent(Happened, payload)] * 2)
    Event.objects.update(recorded_at=ago(600))
    lost = Job.objects.filter(event=younger.id, handler=name)
    assert lost.delete()[0] == 1
    return [younger.id, name, tag]


def schedule(**fields: Any) -> Schedule:
    fields = {"name": "nightly", "handler": "test.work", "every_seconds": 3600} | fields
    return Schedule.objects.create(**fields)


def late_schedule() -> int:
    return schedule(next_run_at=ago(4000)).pk


def schedule_without_handler() -> int:
    return schedule(handler=GONE, next_run_at=ago(-4000)).pk


def slot_without_job() -> int:
    row = schedule(next_run_at=ago(-4000))
    return Slot.objects.create(schedule=row, at=ago(60), outcome="ran", job_id=10**9).pk


def sleeping_queue() -> str:
    change(enqueue(Working), due_at=ago(200))
    return change_queue("test.work", awake=False, awake_at=ago(200), drained_at=ago(60))


def unserved_queue() -> str:
    change(enqueue(Working), due_at=ago(900))
    return change_queue("test.work", awake=True, awake_at=ago(30), drained_at=ago(800), resends=5)


def retired_queue() -> str:
    change(enqueue(Working), due_at=ago(900))
    return change_queue("test.work", retired_at=ago(900))


def removed_handler() -> str:
    return Queue.objects.create(name=GONE, retired_at=ago(600)).name


def missing_queue() -> str:
    Queue.objects.filter(pk="test.work").delete()
    return "test.work"


def missing_index() -> str:
    sql("DROP INDEX tailrace_job_unique_key")
    return "tailrace_job_unique_key"


def two_of_unique_key() -> int:
    missing_index()
    enqueue(Working, unique_key="k")
    return change(enqueue(Working), unique_key="k")


def two_of_routing_key() -> int:
    sql("DROP INDEX tailrace_job_owed_once")
    (event,) = publish(NewEvent(Happened, {"who": "w"}))
    job = Job.objects.get(event=event.id, handler="test.log")
    return change(enqueue(Working), event_id=event.id, handler=job.handler)


@dataclass(frozen=True)
class Case:
    """How to create what a check finds, and whether it can be repaired."""

    create: Callable[[], Any]
    repaired: bool = True
    also: tuple[str, ...] = ()
    """Other checks that find the same."""


CASES = {
    "database.guard_missing": Case(missing_index, repaired=False),
    "jobs.owed_twice": Case(two_of_routing_key, repaired=False, also=("database.guard_missing",)),
    "jobs.unique_key_twice": Case(
        two_of_unique_key, repaired=False, also=("database.guard_missing",)
    ),
    "jobs.unknown_state": Case(lambda: change(enqueue(Working), state="lost"), repaired=False),
    "jobs.running_without_lease": Case(lambda: running_job(lease_until=None)),
    "jobs.lease_ended": Case(lambda: running_job(lease_until=ago(400))),
    "jobs.running_unclaimed": Case(lambda: running_job(claim_no=0, attempt=0), repaired=False),
    "jobs.finished_without_time": Case(
        lambda: change(enqueue(Working), state="failed", finished_at=None)
    ),
    "jobs.failed_without_group": Case(
        lambda: change(enqueue(Working), state="failed", finished_at=ago(300))
    ),
    "jobs.unfinished_with_time": Case(lambda: change(enqueue(Working), finished_at=ago(5))),
    "jobs.lease_without_run": Case(lambda: finished_job(lease_until=ago(-60))),
    "jobs.cancel_forgotten": Case(lambda: change(enqueue(Working), cancel_requested=True)),
    "jobs.unknown_handler": Case(
        lambda: change(enqueue(Working), handler=removed_handler(), due_at=ago(600))
    ),
    "jobs.waiting_unknown_handler": Case(
        lambda: waiting_job(enqueue(Working), handler=removed_handler()), repaired=False
    ),
    "jobs.handler_not_migrated": Case(
        lambda: change(enqueue(Working), handler=GONE, created_at=ago(600)), repaired=False
    ),
    "jobs.no_lane": Case(job_without_lane),
    "jobs.event_missing": Case(lambda: change(enqueue(Working), event_id=10**9), repaired=False),
    "jobs.waits_for_finished": Case(waiting_for_finished_job),
    "jobs.waits_for_missing": Case(lambda: waiting_for_missing_job()),
    "jobs.waits_for_nothing": Case(lambda: waiting_job(None), repaired=False),
    "jobs.waits_in_circle": Case(jobs_in_circle, repaired=False),
    "flows.deadline_passed": Case(overdue_flow),
    "flows.job_of_paused_flow": Case(job_of_paused_flow),
    "flows.job_without_flow": Case(job_without_flow, repaired=False),
    "flows.job_twice": Case(callback_twice, repaired=False),
    "flows.waits_for_stranger": Case(waiting_for_stranger, repaired=False),
    "attempts.job_missing": Case(lambda: attempt(10**9, 1)),
    "attempts.claim_to_come": Case(lambda: attempt(change(enqueue(Working)), 3)),
    "queues.missing": Case(missing_queue),
    "queues.tokens": Case(lambda: change_queue("test.work", rate_limit=5, tokens=-1000)),
    "queues.asleep": Case(sleeping_queue),
    "queues.unserved": Case(unserved_queue, repaired=False),
    "queues.retired_with_work": Case(retired_queue, repaired=False),
    "schedules.behind": Case(late_schedule),
    "schedules.unknown_handler": Case(schedule_without_handler, repaired=False),
    "slots.job_missing": Case(slot_without_job, repaired=False),
    "events.jobs_missing": Case(event_without_jobs),
}


def waiting_for_missing_job() -> int:
    parent = enqueue(Working)
    child = enqueue(Other, after=parent)
    Job.objects.filter(pk=parent).delete()
    return change(child)
