"""Call the handler, and yield a verdict on each job, whatever the handler does."""

from collections.abc import Iterator, Sequence

from jobs.engine.run import termination
from jobs.engine.run.batch import run_batch
from jobs.engine.run.handler_call import run_alone
from jobs.engine.run.verdict import Verdict, handed_back
from jobs.handler import ClaimedJob, Handler


def run(handler: Handler, jobs: Sequence[ClaimedJob], until: float) -> Iterator[Verdict]:
    """Run the jobs and yield a verdict on each as soon as it is known.

    `until` is a time of `time.monotonic()`: jobs that have not begun by then are handed back, so
    that no queue holds a worker for long.
    """
    if handler.in_batches():
        yield from run_batch(handler, jobs, until)
        return
    for place, job in enumerate(jobs):
        if place and termination.time_is_up(until):
            yield handed_back(job, job.suspect_group)
        else:
            yield run_alone(job, handler.handle)
