"""Run another batch of a queue inside a handler's call, while the handler waits for an answer.

The jobs of that batch are claimed, run and settled as in any drain; then the handler checks again
whether it still has to wait. Their calls share its connection, which may be replaced after each:
it holds no transaction, session lock or setting meanwhile.
"""

import threading
import time

from django.conf import settings

from jobs import registry
from jobs.engine.begin import begin
from jobs.engine.drain import engine_session, one_batch
from jobs.engine.throughput import record
from jobs.handler import Handler

MAX_DEPTH = 12
"""Batches within batches: each waits for another slow destination."""

_local = threading.local()


def drain_one_batch(name: str) -> int:
    """Work on one more batch of the queue; return the jobs settled.

    0 if no job is due, or if MAX_DEPTH batches run within each other already.
    """
    depth = getattr(_local, "depth", 0)
    if depth >= MAX_DEPTH:
        return 0
    handler = registry.get(name)
    _local.depth = depth + 1
    try:
        with engine_session(name):
            return _one_batch(handler)
    finally:
        _local.depth = depth
    return 0


def _one_batch(handler: Handler) -> int:
    began = time.monotonic()
    limits = begin(handler)
    if limits is None:
        return 0
    tally = one_batch(handler, limits, began + settings.JOBS_DRAIN_SECONDS)
    if not tally:
        return 0
    record(handler.name, tally, time.monotonic() - began)
    return sum(tally.values())
