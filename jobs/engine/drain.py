"""Drain a queue for a limited time: claim, run, settle. This is one run of a Celery task."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog
from django.db import OperationalError

from tailrace.db import connections
from tailrace.db.query import prepared
from tailrace.environment.conf import conf
from tailrace.jobs.engine import in_flight, registry
from tailrace.jobs.engine.claiming import pace
from tailrace.jobs.engine.claiming.begin import begin
from tailrace.jobs.engine.claiming.claim import Batch, Limits, begin_and_claim, claim
from tailrace.jobs.engine.counters import totals
from tailrace.jobs.engine.in_flight import inline
from tailrace.jobs.engine.leases.give_back import give_back_waiting
from tailrace.jobs.engine.leases.held import EndedJobs, HeldClaim
from tailrace.jobs.engine.leases.lease import watched
from tailrace.jobs.engine.run.batch import run_batch
from tailrace.jobs.engine.run.failure import report
from tailrace.jobs.engine.run.handler_call import run_alone
from tailrace.jobs.engine.run.verdict import Verdict, handed_back
from tailrace.jobs.engine.waking import wake
from tailrace.jobs.engine.waking.activity import OTHERS_WAIT
from tailrace.jobs.handler import Handler
from tailrace.jobs.runtime import shutdown

log = structlog.get_logger(__name__)

SETTLE_SECONDS = 0.25
"""Verdicts are collected for about this long and settled together, and for longer if the database
is far away. If the next call is slow, the thread that watches the claim settles them
(`lease.SLOW_SECONDS`)."""
TURN_SECONDS = 0.2
"""A drain ends after this if another queue waits, so that one full queue does not block the other
queues of a worker."""


def task_of(handler: Handler) -> Callable[[], int]:
    """Return the function of the handler's Celery task. It drains the queue, or notifies the engine
    of an async handler; it returns the number of settled jobs."""

    def work() -> int:
        shutdown.end_once()
        if shutdown.requested():
            return 0
        if handler.is_async():
            in_flight.notify(handler.name)
            return 0
        with shutdown.deferred():
            return drain(handler.name)

    return work


def drain(name: str) -> int:
    """Work on the queue for up to JOBS_DRAIN_SECONDS (or TURN_SECONDS, if others wait), then wake
    it again if it may have more jobs. Return the number of settled jobs."""
    handler = registry.get(name)
    tally: Counter[str] = Counter()
    connections.check_at_next_use()  # also the handler's connection
    with engine_session(name), totals.written_by_drain():
        _drain(handler, tally)
    return sum(tally.values())


@contextmanager
def engine_session(name: str) -> Iterator[None]:
    """Use the engine's connection within the block. A statement timeout or lock timeout ends the
    block and is logged: the tick wakes the queue again if jobs are due."""
    with connections.engine():
        try:
            yield
        except OperationalError as error:
            if not connections.timed_out(error):
                raise
            log.warning("drain.timed_out", queue=name, error=str(error).strip())


def _drain(handler: Handler, tally: Counter[str]) -> None:
    name, began = handler.name, time.monotonic()
    until = began + conf.JOBS_DRAIN_SECONDS
    turn = began + min(TURN_SECONDS, conf.JOBS_DRAIN_SECONDS)
    limits, jobs = connections.with_reconnect(lambda: _begin(handler))
    while limits is not None:
        batch = one_batch(handler, limits, until, jobs)
        jobs = None
        if batch is None:
            break
        tally += batch
        if shutdown.requested():
            wake.wake([name])
            break
        if handler.one_job_per_drain:
            break  # its claim was full, and woke the queue
        if time.monotonic() >= turn:
            turn += TURN_SECONDS
            if time.monotonic() >= until or prepared(OTHERS_WAIT, name=name) == [(True,)]:
                wake.wake([name])
                break
    if tally:
        totals.record(name, tally, time.monotonic() - began)


def _begin(handler: Handler) -> tuple[Limits | None, Batch | None]:
    """Begin the drain. Return the limits of the queue, None if it is paused, and the first jobs if
    they were claimed in the same statement, which is for calls that take no longer than a claim."""
    if pace.is_quick(handler) and (jobs := begin_and_claim(handler, pace.claim_size(handler))):
        return Limits(), jobs
    return begin(handler), None


def one_batch(
    handler: Handler, limits: Limits, until: float, jobs: Batch | None = None
) -> Counter[str] | None:
    """Claim a batch, if it is not given, run it and settle it in groups. Return the number of
    settled jobs by state, or None if no job was due. `until`: see `run`."""
    if handler.is_async():
        return inline.one_round(handler, limits)
    count = pace.claim_size(handler)
    if jobs is None:
        began = time.monotonic()
        jobs = claim(handler, limits, count)
        if not jobs:
            return None
        pace.record_cost(handler, "claim", time.monotonic() - began)
    if pace.is_full(handler, jobs[0].lane, len(jobs), count) and not jobs.awake:
        wake.wake([handler.name])
    tally: Counter[str] = Counter()
    settled_at = time.monotonic()
    settle_every = max(SETTLE_SECONDS, 2 * pace.claim_seconds(handler))
    ended = EndedJobs()
    held = HeldClaim(handler, jobs, ended)
    with watched(held):
        try:
            for verdict in run(handler, held, until):
                ended.add([verdict])
                if time.monotonic() - settled_at >= settle_every:
                    tally += _settle_and_report(handler, ended)
                    settled_at = time.monotonic()
            wake.claimed_next.set("" if handler.one_job_per_drain else handler.name)
        finally:  # also when the process exits: the effects of these jobs have happened
            ended.add(map(handed_back, held.take_waiting()))
            try:
                tally += _settle_and_report(handler, ended)
            finally:
                wake.claimed_next.set("")
    return tally


def run(handler: Handler, held: HeldClaim, until: float) -> Iterator[Verdict]:
    """Run the jobs of a claim and yield the verdict on each job when its call has ended.

    Jobs that have not begun at `until` (by `time.monotonic()`), or when the process shuts down, are
    handed back, so that no queue occupies a worker for long. Jobs that another thread has taken
    with `held.take_waiting()` get no verdict.
    """
    if shutdown.requested():
        pass
    elif handler.in_batches():
        yield from run_batch(handler, held, until, lambda: give_back_waiting(held))
    else:
        yield from _run_one_by_one(handler, held, until)
    yield from map(handed_back, held.take_waiting())


def _run_one_by_one(handler: Handler, held: HeldClaim, until: float) -> Iterator[Verdict]:
    while job := held.begin_next():
        verdict = run_alone(job, handler.handle)
        now = time.monotonic()
        pace.record(handler, now - held.began_at)
        yield verdict
        if now >= until or shutdown.requested():
            break


def _settle_and_report(handler: Handler, ended: EndedJobs) -> Counter[str]:
    """Settle the ended jobs, then report the failures. So a slow reporter does not delay the
    settlement, and failures of lost claims are not reported."""
    began, settled = time.monotonic(), ended.settle()
    if settled:
        pace.record_cost(handler, "settle", time.monotonic() - began)
    for verdict, _state in settled:
        report(verdict)
    return Counter(state for _verdict, state in settled)
