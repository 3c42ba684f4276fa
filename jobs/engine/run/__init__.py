"""Run claimed jobs: call the handler and yield a verdict on each job."""

import time
from collections.abc import Iterator

from tailrace.jobs import shutdown
from tailrace.jobs.engine import pace
from tailrace.jobs.engine.held import HeldClaim
from tailrace.jobs.engine.run.batch import run_batch
from tailrace.jobs.engine.run.handler_call import run_alone
from tailrace.jobs.engine.run.verdict import Verdict, handed_back
from tailrace.jobs.handler import Handler


def run(handler: Handler, held: HeldClaim, until: float) -> Iterator[Verdict]:
    """Run the jobs of a claim and yield the verdict on each job when its call has ended.

    Jobs that have not begun at `until` (by `time.monotonic()`), or when the process shuts down, are
    handed back, so that no queue occupies a worker for long. Jobs that another thread has taken
    with `held.take_waiting()` get no verdict.
    """
    if shutdown.requested():
        pass
    elif handler.in_batches():
        yield from run_batch(handler, held.begin_all(), until)
    else:
        yield from _run_one_by_one(handler, held, until)
    for job in held.take_waiting():
        yield handed_back(job, job.suspect_group)


def _run_one_by_one(handler: Handler, held: HeldClaim, until: float) -> Iterator[Verdict]:
    while job := held.begin_next():
        verdict = run_alone(job, handler.handle)
        now = time.monotonic()
        pace.record(handler, now - held.began_at)
        yield verdict
        if now >= until or shutdown.requested():
            break
