"""Run jobs in the process of the test, with the engine that workers use."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import connections as databases
from django.db.models import F, Max
from pydantic import BaseModel

from tailrace.db import clock, connections
from tailrace.db.engine_database import ENGINE, home
from tailrace.db.query import database_now, query
from tailrace.events.publish import Recorded
from tailrace.jobs.engine import registry
from tailrace.jobs.engine.claiming.claim import worker_name
from tailrace.jobs.engine.drain import drain, run
from tailrace.jobs.engine.in_flight import inline
from tailrace.jobs.engine.leases.held import HeldClaim
from tailrace.jobs.engine.maintenance import sync_declared
from tailrace.jobs.engine.run.verdict import Verdict
from tailrace.jobs.engine.settling import settle
from tailrace.jobs.engine.waking.activity import newest
from tailrace.jobs.enqueue import enqueue
from tailrace.jobs.handler import ClaimedJob, Handler
from tailrace.jobs.models import Attempt, Job
from tailrace.jobs.runtime.states import State
from tailrace.jobs.testing.owed import name_of

MOST_JOBS = 100_000
CALL_SECONDS = 60


@contextmanager
def one_connection() -> Iterator[None]:
    """Let the engine use this thread's default connection within the block."""
    own, databases[ENGINE] = databases[ENGINE], databases[home()]
    token = connections.is_one.set(True)
    try:
        yield
    finally:
        connections.is_one.reset(token)
        databases[ENGINE] = own


@one_connection()
def run_owed(queue: type[Handler] | str | None = None, *, may_fail: bool = False) -> int:
    """Run due jobs, and jobs that become due by them, until none is due; return the number of
    settled jobs. With `queue`, run only jobs of this handler. Raises AssertionError with the
    tracebacks of calls that raised an error, unless `may_fail`."""
    names = list(registry.all_handlers()) if queue is None else [name_of(queue)]
    sync_declared.add_queues()  # of handlers that are newer than the test database
    with errors_raised(may_fail):
        return work_off(names)


@contextmanager
def errors_raised(may_fail: bool) -> Iterator[None]:
    """At the end of the block, raise AssertionError with the tracebacks of the calls in it that
    raised an error, unless `may_fail`."""
    before = Attempt.objects.aggregate(newest=Max("id"))["newest"] or 0
    yield
    errors = Attempt.objects.filter(id__gt=before).exclude(traceback="").select_related("job")
    if not may_fail and (attempts := list(errors.order_by("id")[:3])):
        raise AssertionError("\n".join(map(_error, attempts)))


def work_off(names: Sequence[str]) -> int:
    """Drain these queues until no job is due; return the number of settled jobs."""
    total = 0
    while settled := sum(drain(name) for name in _with_work(names)):
        total += settled
        if total > MOST_JOBS:
            raise AssertionError(
                f"jobs are still due after {total} jobs: are they snoozed endlessly?"
            )
    return total


_WITH_WORK = f"""
SELECT name FROM tailrace_jobs_queue q WHERE name = ANY(%(names)s) AND (
  (SELECT a.awake FROM {newest("q.name")} a) OR EXISTS (
    SELECT 1 FROM tailrace_jobs_live WHERE handler = q.name AND state = 'pending'
      AND due_at <= {clock.NOW}))
"""


def _with_work(names: Sequence[str]) -> list[str]:
    rows = {name for (name,) in query(_WITH_WORK, names=list(names))}
    return [name for name in names if name in rows]


@one_connection()
def perform(
    handler: type[Handler] | str,
    payload: BaseModel | Mapping[str, Any] | None = None,
    *,
    event: Recorded | None = None,
    routing_key: str = "",
) -> Job:
    """Run one job of a handler now, and return it with its new `state`, `result` and `error`.

    The job is enqueued with `payload`. With an `event`, the event's job of this handler and
    `routing_key` is run, or created. The job runs at once, even if its queue is paused.
    """
    name = name_of(handler)
    event_id = None if event is None else event.id
    id = enqueue(name, payload, event_id=event_id, routing_key=routing_key)
    if id is None:  # the event has this job already
        id = Job.objects.get(handler=name, event=event_id, routing_key=routing_key).pk
    run_and_settle([claimed(id)])
    return Job.objects.get(pk=id)


def verdicts_on(jobs: Sequence[ClaimedJob]) -> Iterator[Verdict]:
    """Run claimed jobs of one handler, and yield their verdicts."""
    if jobs[0].handler.is_async():
        return iter(inline.run_all(jobs))
    held = HeldClaim(jobs[0].handler, jobs)
    return run(held.handler, held, time.monotonic() + CALL_SECONDS)


def run_and_settle(jobs: Sequence[ClaimedJob]) -> dict[int, str]:
    return settle.settle(list(verdicts_on(jobs)))


def claimed(id: int) -> ClaimedJob:
    """Claim the job with this id; the claims of workers cannot select a job."""
    job = Job.objects.select_related("event").get(pk=id)
    handler, now, worker = registry.get(job.handler), database_now(), worker_name()
    claimed = Job.objects.filter(pk=id, state=State.PENDING).update(
        state=State.RUNNING,
        attempt=F("attempt") + 1,
        claim_no=F("claim_no") + 1,
        worker=worker,
        begun=True,
        started_at=now,
        lease_until=now + timedelta(seconds=handler.claim_timeout),
    )
    if not claimed:
        raise AssertionError(f"job {id} of {job.handler} is {job.state}, not pending: {job.error}")
    return ClaimedJob(
        id=id,
        handler=handler,
        routing_key=job.routing_key,
        raw_payload=job.payload,
        lane=job.lane,
        attempt=job.attempt + 1,
        claim_no=job.claim_no + 1,
        worker=worker,
        event_row=None,
        event_id=job.event_id,
        _event=None if job.event is None else Recorded.from_model(job.event),
    )


def _error(attempt: Attempt) -> str:
    job = attempt.job
    return (
        f"job {job.pk} of {job.handler} raised an error and is {job.state} (to continue after"
        f" errors, use may_fail=True):\n{attempt.traceback}"
    )
