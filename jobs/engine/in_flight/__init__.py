"""Async handlers: each worker process runs many of their calls at once, beside its Celery tasks.

A process has one thread with an event loop, which runs the code of these handlers, and one engine
thread, which claims and settles jobs and wakes queues. The Celery task of an async handler only
notifies the engine thread that the queue may have work, and ends at once. So the process continues
with its other queues while calls are in flight.
"""

import os
import threading
import time

from tailrace.jobs.engine.in_flight.engine import InFlight
from tailrace.jobs.engine.waking import wake

PASS_ON_SECONDS = 0.03
"""The time in which a message reaches another process."""

_lock = threading.Lock()
_in_flight: InFlight | None = None
_is_ending = False


def notify(name: str) -> None:
    """Notify this process that the queue of an async handler may have work.

    If it cannot take more jobs, it sends a new message and keeps its Celery task busy for
    PASS_ON_SECONDS: Celery gives the message to an idle process, so to another one.
    """
    global _in_flight
    with _lock:
        if _is_ending:
            return  # the tick sends the message again
        if _in_flight is None:
            _in_flight = InFlight()
        pass_on = _in_flight.notify(name)
    if pass_on:
        wake.deliver([name])
        time.sleep(PASS_ON_SECONDS)


def shut_down(grace_seconds: float) -> None:
    """Stop claiming, wait up to `grace_seconds` for the calls in flight, interrupt the others and
    hand their jobs back. Returns when all jobs are settled."""
    global _in_flight, _is_ending
    with _lock:
        _is_ending = True
        in_flight, _in_flight = _in_flight, None
    if in_flight is not None:
        in_flight.shut_down(grace_seconds)


def _begin() -> None:
    global _lock, _in_flight, _is_ending
    _lock, _in_flight, _is_ending = threading.Lock(), None, False


os.register_at_fork(after_in_child=_begin)  # the threads stay in the parent
