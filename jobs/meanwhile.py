"""meanwhile: a handler that waits for somebody slow lets its worker go on with the queue.

The batch that is served meanwhile runs inside the handler's own call: its jobs are claimed, run
and settled as in any drain, and then the handler looks again whether it still has to wait.
"""

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings

from jobs import drain, registry, wake
from jobs.claim import claim
from jobs.throughput import record

DEEPEST = 12
"""Batches within batches: each waits for somebody else who is slow."""

_here = threading.local()


def serve(name: str) -> int:
    """Work on one more batch of the queue; return the jobs settled.

    0 if nothing is due, or if so many batches wait within each other that this one must not.
    """
    depth = getattr(_here, "depth", 0)
    if depth >= DEEPEST:
        return 0
    handler = registry.get(name)
    began = time.monotonic()
    limits = drain._begin(handler)
    jobs = claim(handler, limits) if limits is not None else None
    if not jobs:
        return 0
    if len(jobs) == handler.batch_size and not jobs.awake:
        wake.wake([name])
    _here.depth = depth + 1
    try:
        with _time_limit_kept():
            tally: Counter[str] = drain._work(handler, jobs, began + settings.JOBS_DRAIN_SECONDS)
    finally:
        _here.depth = depth
    record(name, tally, time.monotonic() - began)
    return sum(tally.values())


@contextmanager
def _time_limit_kept() -> Iterator[None]:
    """Set the alarm of the call around us again: there is one per process, and the inner call's
    own took its place."""
    began, (left, _interval) = time.monotonic(), signal.getitimer(signal.ITIMER_REAL)
    try:
        yield
    finally:
        if left and threading.current_thread() is threading.main_thread():
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 0.001))
