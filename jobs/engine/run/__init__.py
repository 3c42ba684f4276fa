"""Call the handler, and yield a verdict on each job, whatever the handler does."""

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
    """Run the jobs of a claim and yield a verdict on each as soon as it is known.

    `until` is a time of `time.monotonic()`: jobs that have not begun by then are handed back, so
    that no queue holds a worker for long; so are those that have not begun when the process is to
    end. Of those that were given back meanwhile there is no verdict.
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
