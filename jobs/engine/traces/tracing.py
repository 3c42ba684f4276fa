"""Record what happens to claimed jobs as spans, if tracing is on."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from tailrace.jobs.engine.traces import spans
from tailrace.jobs.handler import ClaimedJob
from tailrace.net import tracing


def now() -> int:
    """Return the time in nanoseconds, as spans need it; 0 if tracing is off."""
    return time.time_ns() if tracing.on else 0


def claimed(jobs: Sequence[ClaimedJob], began: int) -> None:
    """Begin the spans of claimed jobs. `began` is the time when the claim began, by `now`."""
    if tracing.on:
        spans.claimed(jobs, began)


def running(jobs: Sequence[ClaimedJob]) -> AbstractContextManager[None]:
    """Record the block as the `run` span of each job."""
    return spans.running(jobs) if tracing.on else nullcontext()
