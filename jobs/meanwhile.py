"""meanwhile: a handler that waits for somebody slow lets its worker go on with the queue.

The batch that is served meanwhile runs inside the handler's own call: its jobs are claimed, run
and settled as in any drain, and then the handler looks again whether it still has to wait.
"""

import threading
import time

from django.conf import settings

from jobs import registry
from jobs.drain import begin, one_batch
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
    limits = begin(handler)
    if limits is None:
        return 0
    _here.depth = depth + 1
    try:
        tally = one_batch(handler, limits, began + settings.JOBS_DRAIN_SECONDS)
    finally:
        _here.depth = depth
    if not tally:
        return 0
    record(name, tally, time.monotonic() - began)
    return sum(tally.values())
